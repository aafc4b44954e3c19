// One operation per rule that prepares numbers for every target.
gpu.module @numbers {
  gpu.func @functions(%x: f32, %v: vector<2x2xf32>, %h: bf16, %n: i32, %out: memref<8xf32>, %mask: memref<8xi1>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %s, %c = math.sincos %x : f32
    memref.store %s, %out[%c0] : memref<8xf32>
    memref.store %c, %out[%c1] : memref<8xf32>
    %t = math.tanh %v : vector<2x2xf32>
    %t0 = vector.extract %t[1, 1] : f32 from vector<2x2xf32>
    memref.store %t0, %out[%c2] : memref<8xf32>
    %e = math.log %h : bf16
    %f = arith.extf %e : bf16 to f32
    memref.store %f, %out[%c3] : memref<8xf32>
    %i = math.isinf %x : f32
    memref.store %i, %mask[%c0] : memref<8xi1>
    gpu.return
  }
  gpu.func @integers(%n: i32, %out: memref<4xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %p = math.ipowi %n, %n : i32
    memref.store %p, %out[%c0] : memref<4xi32>
    %l = math.ctlz %n : i32
    memref.store %l, %out[%c1] : memref<4xi32>
    gpu.return
  }
  gpu.func @memory(%x: memref<8xi1>, %y: memref<8xi1>, %f: memref<4xf8E5M2>) kernel {
    %c0 = arith.constant 0 : index
    %v = vector.load %x[%c0] : memref<8xi1>, vector<4xi1>
    vector.store %v, %y[%c0] : memref<8xi1>, vector<4xi1>
    memref.copy %x, %y : memref<8xi1> to memref<8xi1>
    %a = memref.load %f[%c0] : memref<4xf8E5M2>
    %b = arith.addf %a, %a : f8E5M2
    memref.store %b, %f[%c0] : memref<4xf8E5M2>
    gpu.return
  }
}
