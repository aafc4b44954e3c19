// Complex numbers: the rules of offload-prepare-complex, one kernel each.
gpu.module @numbers {
  gpu.func @bits(%x: memref<2xcomplex<f32>>, %y: memref<2xi64>, %z: memref<2xf64>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %v = memref.load %x[%c0] : memref<2xcomplex<f32>>
    %b = complex.bitcast %v : complex<f32> to i64
    memref.store %b, %y[%c0] : memref<2xi64>
    %d = memref.load %z[%c0] : memref<2xf64>
    %w = complex.bitcast %d : f64 to complex<f32>
    memref.store %w, %x[%c1] : memref<2xcomplex<f32>>
    gpu.return
  }
  gpu.func @root(%x: memref<2xcomplex<f32>>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<2xcomplex<f32>>
    %r = complex.sqrt %v : complex<f32>
    memref.store %r, %x[%c0] : memref<2xcomplex<f32>>
    gpu.return
  }
  gpu.func @quotient(%x: memref<2xcomplex<f32>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %v = memref.load %x[%c0] : memref<2xcomplex<f32>>
    %w = memref.load %x[%c1] : memref<2xcomplex<f32>>
    %p = complex.mul %v, %w : complex<f32>
    %q = complex.div %p, %w : complex<f32>
    memref.store %q, %x[%c0] : memref<2xcomplex<f32>>
    gpu.return
  }
  gpu.func @wave(%x: memref<2xcomplex<f32>>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<2xcomplex<f32>>
    %r = complex.sin %v : complex<f32>
    memref.store %r, %x[%c0] : memref<2xcomplex<f32>>
    gpu.return
  }
}
