// What functions say of themselves, for Python: help, optional arrays, names from attributes and locations.
module {
  func.func @axpy(%a: f32, %x: memref<?xf32>, %y: memref<?xf32>,
                  %out: memref<?xf32> {offload.name = "copy", offload.optional}) -> index
      attributes {offload.doc = "Adds a x to y.\0A\0A    Where copy is given, the \\ sum \22goes\22 there too."} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %size = memref.dim %x, %c0 : memref<?xf32>
    %room = memref.dim %out, %c0 : memref<?xf32>
    %given = arith.cmpi ne, %room, %c0 : index
    scf.for %i = %c0 to %size step %c1 {
      %v = memref.load %x[%i] : memref<?xf32>
      %w = memref.load %y[%i] : memref<?xf32>
      %m = arith.mulf %a, %v : f32
      %s = arith.addf %m, %w : f32
      memref.store %s, %y[%i] : memref<?xf32>
      scf.if %given {
        memref.store %s, %out[%i] : memref<?xf32>
      }
    }
    return %room : index
  }

  // The sizes, strides and offset that a function sees of an array, and None among the first arguments.
  func.func @seen(%x: memref<?x4xf32, strided<[?, 1], offset: 2>> {offload.optional}, %n: i64,
                  %sizes: memref<4xindex>) -> index {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %base, %offset, %s:2, %t:2 = memref.extract_strided_metadata %x
        : memref<?x4xf32, strided<[?, 1], offset: 2>> -> memref<f32>, index, index, index, index, index
    memref.store %s#0, %sizes[%c0] : memref<4xindex>
    memref.store %s#1, %sizes[%c1] : memref<4xindex>
    memref.store %t#0, %sizes[%c2] : memref<4xindex>
    memref.store %offset, %sizes[%c3] : memref<4xindex>
    %at = memref.extract_aligned_pointer_as_index %x : memref<?x4xf32, strided<[?, 1], offset: 2>> -> index
    return %at : index
  }

  func.func @same(%x: memref<?xf32> {offload.optional}) -> memref<?xf32> {
    return %x : memref<?xf32>
  }

  func.func @fresh() -> memref<2xf64> {
    %m = memref.alloc() : memref<2xf64>
    %one = arith.constant 1.0 : f64
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    memref.store %one, %m[%c0] : memref<2xf64>
    memref.store %one, %m[%c1] : memref<2xf64>
    return %m : memref<2xf64>
  }

  func.func @class(%a: i1, %b: bf16, %c: complex<f32>) -> (i64, bf16) {
    %i = arith.constant 3 : i64
    return %i, %b : i64, bf16
  }

  func.func @use() {
    return
  }

  gpu.module @tools {
    gpu.func @fill(%x: memref<?xf32> {offload.optional}, %v: f32 loc("value"), %n: i32) kernel
        attributes {offload.doc = "Fills the first n of x."} {
      %c0 = arith.constant 0 : index
      %i = gpu.thread_id x
      %room = memref.dim %x, %c0 : memref<?xf32>
      %wide = arith.index_cast %n : i32 to index
      %end = arith.minui %room, %wide : index
      %in = arith.cmpi ult, %i, %end : index
      scf.if %in {
        memref.store %v, %x[%i] : memref<?xf32>
      }
      gpu.return
    }
  }
}
