  // Numbers of all kinds.

// each TYPE: f16 bf16 f32 f64
  gpu.func @arithmetic_$TYPE(%x: memref<?x$TYPE>, %y: memref<?x$TYPE>, %out: memref<?x4x$TYPE>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %at = func.call @at() : () -> index
    %a = memref.load %x[%at] : memref<?x$TYPE>
    %b = memref.load %y[%at] : memref<?x$TYPE>
    %sum = arith.addf %a, %b : $TYPE
    %product = arith.mulf %a, %b : $TYPE
    %quotient = arith.divf %a, %b : $TYPE
    %most = arith.maximumf %a, %b : $TYPE
    memref.store %sum, %out[%at, %c0] : memref<?x4x$TYPE>
    memref.store %product, %out[%at, %c1] : memref<?x4x$TYPE>
    memref.store %quotient, %out[%at, %c2] : memref<?x4x$TYPE>
    memref.store %most, %out[%at, %c3] : memref<?x4x$TYPE>
    gpu.return
  }
// end

  // To bf16, in one rounding.
  gpu.func @narrowed(%x: memref<?xf64>, %y: memref<?xi64>, %out: memref<?x6xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %at = func.call @at() : () -> index
    %wide = memref.load %x[%at] : memref<?xf64>
    %word = memref.load %y[%at] : memref<?xi64>
    %float = arith.truncf %wide : f64 to f32
    %a = arith.truncf %wide : f64 to bf16
    %b = arith.truncf %float : f32 to bf16
    %c = arith.sitofp %word : i64 to bf16
    %d = arith.uitofp %word : i64 to bf16
    %half = arith.trunci %word : i64 to i32
    %e = arith.sitofp %half : i32 to bf16
    %f = arith.uitofp %half : i32 to bf16
    memref.store %a, %out[%at, %c0] : memref<?x6xbf16>
    memref.store %b, %out[%at, %c1] : memref<?x6xbf16>
    memref.store %c, %out[%at, %c2] : memref<?x6xbf16>
    memref.store %d, %out[%at, %c3] : memref<?x6xbf16>
    memref.store %e, %out[%at, %c4] : memref<?x6xbf16>
    memref.store %f, %out[%at, %c5] : memref<?x6xbf16>
    gpu.return
  }

// each TYPE: i8 i16 i32 i64
  gpu.func @integers_$TYPE(%x: memref<?x$TYPE>, %y: memref<?x$TYPE>, %out: memref<?x6x$TYPE>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %three = arith.constant 3 : $TYPE
    %at = func.call @at() : () -> index
    %a = memref.load %x[%at] : memref<?x$TYPE>
    %b = memref.load %y[%at] : memref<?x$TYPE>
    %sum = arith.addi %a, %b : $TYPE
    %product = arith.muli %a, %b : $TYPE
    %quotient = arith.divui %a, %b : $TYPE
    %least = arith.minsi %a, %b : $TYPE
    %bits = math.ctpop %a : $TYPE
    %shifted = arith.shrsi %a, %three : $TYPE
    memref.store %sum, %out[%at, %c0] : memref<?x6x$TYPE>
    memref.store %product, %out[%at, %c1] : memref<?x6x$TYPE>
    memref.store %quotient, %out[%at, %c2] : memref<?x6x$TYPE>
    memref.store %least, %out[%at, %c3] : memref<?x6x$TYPE>
    memref.store %bits, %out[%at, %c4] : memref<?x6x$TYPE>
    memref.store %shifted, %out[%at, %c5] : memref<?x6x$TYPE>
    gpu.return
  }
// end

// each TYPE: f8E4M3FN f8E5M2
  gpu.func @small_$TYPE(%x: memref<?x$TYPE>, %out: memref<?x$TYPE>) kernel {
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?x$TYPE>
    %w = arith.extf %v : $TYPE to f32
    %half = arith.constant 0.5 : f32
    %s = arith.mulf %w, %half : f32
    %r = arith.truncf %s : f32 to $TYPE
    memref.store %r, %out[%at] : memref<?x$TYPE>
    gpu.return
  }
// end

  gpu.func @bits(%x: memref<?xi32>, %y: memref<?xi32>, %out: memref<?xi8>) kernel {
    %at = func.call @at() : () -> index
    %a = memref.load %x[%at] : memref<?xi32>
    %b = memref.load %y[%at] : memref<?xi32>
    %less = arith.cmpi slt, %a, %b : i32
    %below = arith.cmpi ult, %a, %b : i32
    %differ = arith.xori %less, %below : i1
    gpu.barrier
    %byte = arith.extui %differ : i1 to i8
    memref.store %byte, %out[%at] : memref<?xi8>
    gpu.return
  }

  // Integers of no common width, with wrap-around in each.
  gpu.func @odd_widths(%x: memref<?xi64>, %out: memref<?xi64>) kernel {
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi64>
    %a = arith.trunci %v : i64 to i7
    %b = arith.trunci %v : i64 to i23
    %c = arith.trunci %v : i64 to i48
    %a2 = arith.muli %a, %a : i7
    %b2 = arith.muli %b, %b : i23
    %c2 = arith.addi %c, %c : i48
    %a3 = arith.extsi %a2 : i7 to i64
    %b3 = arith.extui %b2 : i23 to i64
    %c3 = arith.extsi %c2 : i48 to i64
    %s = arith.addi %a3, %b3 : i64
    %t = arith.addi %s, %c3 : i64
    memref.store %t, %out[%at] : memref<?xi64>
    gpu.return
  }

  gpu.func @complex_numbers(%x: memref<?xcomplex<f32>>, %y: memref<?xcomplex<f32>>, %out: memref<?xcomplex<f32>>) kernel {
    %at = func.call @at() : () -> index
    %a = memref.load %x[%at] : memref<?xcomplex<f32>>
    %b = memref.load %y[%at] : memref<?xcomplex<f32>>
    %p = complex.mul %a, %b : complex<f32>
    gpu.barrier
    %s = complex.add %p, %a : complex<f32>
    memref.store %s, %out[%at] : memref<?xcomplex<f32>>
    gpu.return
  }

  gpu.func @vectors(%x: memref<?x8xf32>, %out: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %at = func.call @at() : () -> index
    %a = vector.load %x[%at, %c0] : memref<?x8xf32>, vector<4xf32>
    %b = vector.load %x[%at, %c4] : memref<?x8xf32>, vector<4xf32>
    %f = vector.fma %a, %b, %a : vector<4xf32>
    gpu.barrier
    %s = vector.shuffle %f, %a [0, 2, 4, 6] : vector<4xf32>, vector<4xf32>
    %r = vector.reduction <add>, %s : vector<4xf32> into f32
    memref.store %r, %out[%at] : memref<?xf32>
    gpu.return
  }

  gpu.func @functions(%x: memref<?xf64>, %out: memref<?xf64>) kernel {
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xf64>
    %e = math.exp %v : f64
    %s = math.sqrt %e : f64
    %t = math.tanh %v : f64
    %a = math.absf %t : f64
    %r = arith.addf %s, %a : f64
    memref.store %r, %out[%at] : memref<?xf64>
    gpu.return
  }
