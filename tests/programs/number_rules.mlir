// Rules for numbers, one kernel each: see the golden IR.
gpu.module @rules {
  gpu.func @clamp(%x: memref<4xf32>, %low: f32, %high: f32) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<4xf32>
    %r = math.clampf %v to [%low, %high] : f32
    memref.store %r, %x[%c0] : memref<4xf32>
    gpu.return
  }
  gpu.func @power(%x: memref<4xf32>, %n: i32) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<4xf32>
    %r = math.fpowi %v, %n : f32, i32
    memref.store %r, %x[%c0] : memref<4xf32>
    %a = math.fpowi %v, %n fastmath<afn> : f32, i32
    memref.store %a, %x[%c0] : memref<4xf32>
    gpu.return
  }
  gpu.func @fused(%x: memref<4xbf16>, %y: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<4xbf16>
    %r = math.fma %v, %v, %v : bf16
    memref.store %r, %x[%c0] : memref<4xbf16>
    %w = vector.load %y[%c0] : memref<4xf32>, vector<4xf32>
    %s = vector.fma %w, %w, %w : vector<4xf32>
    vector.store %s, %y[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
  gpu.func @small(%x: memref<4xf8E4M3FN>, %y: memref<4xf32>, %z: memref<4xf16>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<4xf8E4M3FN>
    %w = arith.extf %v : f8E4M3FN to f32
    memref.store %w, %y[%c0] : memref<4xf32>
    %n = arith.truncf %w : f32 to f8E4M3FN
    memref.store %n, %x[%c0] : memref<4xf8E4M3FN>
    %d = arith.truncf %w toward_zero : f32 to f16
    memref.store %d, %z[%c0] : memref<4xf16>
    gpu.return
  }
  gpu.func @root(%x: memref<4xcomplex<f32>>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<4xcomplex<f32>>
    %r = complex.sqrt %v : complex<f32>
    memref.store %r, %x[%c0] : memref<4xcomplex<f32>>
    gpu.return
  }
  gpu.func @counted(%x: memref<4xi32>, %y: memref<4xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<4xi32>
    %r = arith.uitofp %v : i32 to bf16
    memref.store %r, %y[%c0] : memref<4xbf16>
    gpu.return
  }
  gpu.func @bits(%x: memref<2xi1>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %v = memref.load %x[%c0] : memref<2xi1>
    %w = memref.load %x[%c1] : memref<2xi1>
    %low, %high = arith.mulsi_extended %v, %w : i1
    memref.store %low, %x[%c0] : memref<2xi1>
    memref.store %high, %x[%c1] : memref<2xi1>
    gpu.return
  }
  gpu.func @bit(%x: memref<2xf32>, %y: memref<2xi1>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<2xf32>
    %r = arith.fptosi %v : f32 to i1
    memref.store %r, %y[%c0] : memref<2xi1>
    gpu.return
  }
}
