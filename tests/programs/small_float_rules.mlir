// Floats of 4 to 8 bits and directed rounding: the rules of offload-prepare-small-floats, one kernel each.
gpu.module @small {
  gpu.func @wide(%x: memref<4xf8E5M2>, %y: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<4xf8E5M2>
    %w = arith.extf %v : f8E5M2 to f32
    memref.store %w, %y[%c0] : memref<4xf32>
    gpu.return
  }
  gpu.func @narrow(%x: memref<4xf64>, %y: memref<4xf8E4M3FNUZ>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<4xf64>
    %n = arith.truncf %v : f64 to f8E4M3FNUZ
    memref.store %n, %y[%c0] : memref<4xf8E4M3FNUZ>
    gpu.return
  }
  gpu.func @power(%x: memref<4xf32>, %y: memref<4xf8E8M0FNU>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %v = memref.load %x[%c0] : memref<4xf32>
    %n = arith.truncf %v : f32 to f8E8M0FNU
    memref.store %n, %y[%c0] : memref<4xf8E8M0FNU>
    %p = memref.load %y[%c1] : memref<4xf8E8M0FNU>
    %w = arith.extf %p : f8E8M0FNU to f32
    memref.store %w, %x[%c1] : memref<4xf32>
    gpu.return
  }
  gpu.func @sum(%x: memref<4xf8E5M2>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<4xf8E5M2>
    %s = arith.addf %v, %v : f8E5M2
    %t = arith.addf %s, %v : f8E5M2
    memref.store %t, %x[%c0] : memref<4xf8E5M2>
    gpu.return
  }
  gpu.func @scaled(%x: memref<4xf8E5M2>, %s: memref<4xf8E8M0FNU>, %y: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<4xf8E5M2>
    %scale = memref.load %s[%c0] : memref<4xf8E8M0FNU>
    %w = arith.scaling_extf %v, %scale : f8E5M2, f8E8M0FNU to f32
    memref.store %w, %y[%c0] : memref<4xf32>
    gpu.return
  }
  gpu.func @directions(%x: memref<4xf32>, %y: memref<4xf16>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %v = memref.load %x[%c0] : memref<4xf32>
    %a = arith.truncf %v downward : f32 to f16
    memref.store %a, %y[%c0] : memref<4xf16>
    %b = arith.truncf %v upward : f32 to f16
    memref.store %b, %y[%c1] : memref<4xf16>
    %c = arith.truncf %v to_nearest_away : f32 to f16
    memref.store %c, %y[%c2] : memref<4xf16>
    %d = arith.truncf %v to_nearest_even : f32 to f16
    memref.store %d, %y[%c3] : memref<4xf16>
    gpu.return
  }
}
