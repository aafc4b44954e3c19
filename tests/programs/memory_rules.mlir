// Memory in kernels, one kernel per rule, for golden/memory_rules.lowered.check.
gpu.module @memory {
  memref.global "private" constant @table : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
  memref.global "private" @scratch : memref<32xf32, #gpu.address_space<workgroup>>
  gpu.func @copy(%x: memref<?x4xf32>, %y: memref<?x4xf32>) kernel {
    memref.copy %x, %y : memref<?x4xf32> to memref<?x4xf32>
    gpu.return
  }
  gpu.func @view(%x: memref<?x?xf32>, %i: index, %v: f32) kernel {
    %c1 = arith.constant 1 : index
    %s = memref.subview %x[%i, %i] [4, 4] [1, 1] : memref<?x?xf32> to memref<4x4xf32, strided<[?, 1], offset: ?>>
    memref.store %v, %s[%c1, %c1] : memref<4x4xf32, strided<[?, 1], offset: ?>>
    gpu.return
  }
  gpu.func @places(%x: memref<?xf32>, %i: index) kernel {
    %v = affine.load %x[2 * symbol(%i) + 1] : memref<?xf32>
    affine.store %v, %x[symbol(%i) floordiv 4] : memref<?xf32>
    gpu.return
  }
  gpu.func @attributions(%x: memref<32xf32>, %i: index)
      workgroup(%w: memref<32xf32, #gpu.address_space<workgroup>>)
      private(%p: memref<4xf32, #gpu.address_space<private>>) kernel {
    %v = memref.load %x[%i] : memref<32xf32>
    memref.store %v, %w[%i] : memref<32xf32, #gpu.address_space<workgroup>>
    memref.store %v, %p[%i] : memref<4xf32, #gpu.address_space<private>>
    gpu.barrier
    %c3 = arith.constant 3 : index
    %a = memref.load %w[%c3] : memref<32xf32, #gpu.address_space<workgroup>>
    %b = memref.load %p[%c3] : memref<4xf32, #gpu.address_space<private>>
    %r = arith.addf %a, %b : f32
    memref.store %r, %x[%i] : memref<32xf32>
    gpu.return
  }
  gpu.func @globals(%x: memref<32xf32>, %i: index) kernel {
    %t = memref.get_global @table : memref<4xf32>
    %s = memref.get_global @scratch : memref<32xf32, #gpu.address_space<workgroup>>
    %v = memref.load %t[%i] : memref<4xf32>
    memref.store %v, %s[%i] : memref<32xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %c3 = arith.constant 3 : index
    %r = memref.load %s[%c3] : memref<32xf32, #gpu.address_space<workgroup>>
    memref.store %r, %x[%i] : memref<32xf32>
    gpu.return
  }
  gpu.func @dynamic(%x: memref<32xi8>, %i: index) kernel {
    %c8 = arith.constant 8 : index
    %d = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %v = memref.load %x[%i] : memref<32xi8>
    memref.store %v, %d[%i] : memref<?xi8, #gpu.address_space<workgroup>>
    gpu.barrier
    %r = memref.load %d[%c8] : memref<?xi8, #gpu.address_space<workgroup>>
    memref.store %r, %x[%i] : memref<32xi8>
    gpu.return
  }
  gpu.func @products(%x: memref<4xf32>, %y: memref<4xi32>, %f: f32, %n: i32) kernel {
    %c1 = arith.constant 1 : index
    %a = memref.atomic_rmw mulf %f, %x[%c1] : (f32, memref<4xf32>) -> f32
    %b = memref.atomic_rmw muli %n, %y[%c1] : (i32, memref<4xi32>) -> i32
    %c = memref.atomic_rmw addf %f, %x[%c1] : (f32, memref<4xf32>) -> f32
    gpu.return
  }
  gpu.func @generic(%x: memref<4xf16>) kernel {
    %c1 = arith.constant 1 : index
    %r = memref.generic_atomic_rmw %x[%c1] : memref<4xf16> {
    ^bb0(%old: f16):
      %new = arith.mulf %old, %old : f16
      memref.atomic_yield %new : f16
    }
    gpu.return
  }
  gpu.func @words(%x: memref<?xi64>, %i: index) kernel {
    %v = memref.load %x[%i] : memref<?xi64>
    %r = arith.addi %v, %v : i64
    memref.store %r, %x[%i] : memref<?xi64>
    gpu.return
  }
  gpu.func @own(%x: memref<64xf32>, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %own = memref.alloca() : memref<64xf32>
    memref.copy %x, %own : memref<64xf32> to memref<64xf32>
    %v = memref.load %own[%i] : memref<64xf32>
    memref.store %v, %x[%c0] : memref<64xf32>
    gpu.return
  }
}
