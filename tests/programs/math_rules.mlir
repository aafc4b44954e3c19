// One kernel per rule of offload-prepare-math that number_rules.mlir and numbers.mlir leave out.
gpu.module @math {
  gpu.func @flat(%x: memref<6xf32>, %v: vector<2x3xf32>) kernel {
    %c0 = arith.constant 0 : index
    %a = math.absf %v : vector<2x3xf32>
    %r = vector.shape_cast %a : vector<2x3xf32> to vector<6xf32>
    vector.store %r, %x[%c0] : memref<6xf32>, vector<6xf32>
    gpu.return
  }
  gpu.func @short(%x: memref<4xbf16>, %y: memref<4xf16>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<4xbf16>
    %e = math.exp %v : bf16
    memref.store %e, %x[%c0] : memref<4xbf16>
    %w = memref.load %y[%c0] : memref<4xf16>
    %a = math.absf %w : f16
    memref.store %a, %y[%c0] : memref<4xf16>
    gpu.return
  }
  gpu.func @each(%x: memref<2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %v = vector.load %x[%c0] : memref<2xf32>, vector<2xf32>
    %r = math.erf %v : vector<2xf32>
    vector.store %r, %x[%c0] : memref<2xf32>, vector<2xf32>
    gpu.return
  }
  gpu.func @most(%x: memref<4xbf16>, %y: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %v = memref.load %x[%c0] : memref<4xbf16>
    %u = memref.load %x[%c1] : memref<4xbf16>
    %m = arith.maximumf %v, %u fastmath<nnan,nsz> : bf16
    memref.store %m, %x[%c0] : memref<4xbf16>
    %w = memref.load %y[%c0] : memref<4xf32>
    %o = memref.load %y[%c1] : memref<4xf32>
    %n = arith.minimumf %w, %o fastmath<nnan> : f32
    memref.store %n, %y[%c0] : memref<4xf32>
    gpu.return
  }
  gpu.func @classes(%x: memref<4xf32>, %y: memref<4xi1>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %v = memref.load %x[%c0] : memref<4xf32>
    %a = math.isnan %v : f32
    memref.store %a, %y[%c0] : memref<4xi1>
    %b = math.isinf %v : f32
    memref.store %b, %y[%c1] : memref<4xi1>
    %c = math.isfinite %v : f32
    memref.store %c, %y[%c2] : memref<4xi1>
    %d = math.isnormal %v : f32
    memref.store %d, %y[%c3] : memref<4xi1>
    gpu.return
  }
  gpu.func @carry(%x: memref<4xindex>, %y: memref<4xi1>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<4xindex>
    %sum, %carry = arith.addui_extended %v, %v : index, i1
    memref.store %sum, %x[%c0] : memref<4xindex>
    memref.store %carry, %y[%c0] : memref<4xi1>
    %c1 = arith.constant 1 : index
    %low, %high = arith.mulsi_extended %v, %v : index
    memref.store %high, %x[%c1] : memref<4xindex>
    gpu.return
  }
  gpu.func @waves(%x: memref<2xf32>, %v: vector<2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %s, %c = math.sincos %v : vector<2xf32>
    %r = arith.addf %s, %c : vector<2xf32>
    vector.store %r, %x[%c0] : memref<2xf32>, vector<2xf32>
    gpu.return
  }
  gpu.func @powers(%x: memref<4xf32>, %n: i8, %m: i64) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %v = memref.load %x[%c0] : memref<4xf32>
    %p = math.fpowi %v, %n fastmath<afn> : f32, i8
    memref.store %p, %x[%c0] : memref<4xf32>
    %q = math.fpowi %v, %m : f32, i64
    memref.store %q, %x[%c1] : memref<4xf32>
    gpu.return
  }
  gpu.func @whole(%x: memref<8xi32>, %y: memref<4xindex>, %z: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %v = memref.load %x[%c0] : memref<8xi32>
    %a = math.absi %v : i32
    memref.store %a, %x[%c0] : memref<8xi32>
    %l = math.ctlz %v : i32
    memref.store %l, %x[%c1] : memref<8xi32>
    %t = math.cttz %v : i32
    memref.store %t, %x[%c2] : memref<8xi32>
    %w = memref.load %y[%c0] : memref<4xindex>
    %b = math.ctpop %w : index
    memref.store %b, %y[%c0] : memref<4xindex>
    %f = memref.load %z[%c0] : memref<4xf32>
    %u = math.trunc %f : f32
    memref.store %u, %z[%c0] : memref<4xf32>
    gpu.return
  }
}
func.func @precise(%x: f32) -> f32 {
  %a = math.expm1 %x : f32
  %b = math.log1p %a : f32
  return %b : f32
}
