  // Reductions over a warp, parts of one, and a block.

// each OP TYPE: add i8, add i16, add i32, add i64, add f16, add f32, add f64, mul i32, mul f32, minsi i32, maxsi i16, minui i32, maxui i64, and i32, or i64, xor i8, minnumf f32, maxnumf f64, minimumf f32, maximumf f16
  gpu.func @warp_$OP_$TYPE(%x: memref<?x$TYPE>, %out: memref<?x$TYPE>) kernel {
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?x$TYPE>
    %r = gpu.subgroup_reduce $OP %v uniform : ($TYPE) -> $TYPE
    memref.store %r, %out[%at] : memref<?x$TYPE>
    gpu.return
  }
  gpu.func @block_$OP_$TYPE(%x: memref<?x$TYPE>, %out: memref<?x$TYPE>) kernel {
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?x$TYPE>
    %r = gpu.all_reduce $OP %v uniform {} : ($TYPE) -> $TYPE
    memref.store %r, %out[%at] : memref<?x$TYPE>
    gpu.return
  }
// end

// each SIZE STRIDE: 4 1, 8 2, 1 1, 2 16
  gpu.func @cluster_$SIZE_$STRIDE(%x: memref<?xi32>, %out: memref<?xi32>) kernel {
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %r = gpu.subgroup_reduce add %v uniform cluster(size = $SIZE, stride = $STRIDE) : (i32) -> i32
    memref.store %r, %out[%at] : memref<?xi32>
    gpu.return
  }
// end

  gpu.func @vectors(%x: memref<?x4xf32>, %out: memref<?x4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %at = func.call @at() : () -> index
    %v = vector.load %x[%at, %c0] : memref<?x4xf32>, vector<4xf32>
    %r = gpu.subgroup_reduce add %v uniform : (vector<4xf32>) -> vector<4xf32>
    vector.store %r, %out[%at, %c0] : memref<?x4xf32>, vector<4xf32>
    gpu.return
  }

  // The author's own operation: the value that is further from zero, the positive one of two.
  gpu.func @own_operation(%x: memref<?xi32>, %out: memref<?xi32>) kernel {
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %r = gpu.all_reduce %v uniform {
    ^bb0(%a: i32, %b: i32):
      %zero = arith.constant 0 : i32
      %na = arith.subi %zero, %a : i32
      %nb = arith.subi %zero, %b : i32
      %pa = arith.maxsi %a, %na : i32
      %pb = arith.maxsi %b, %nb : i32
      %further = arith.cmpi sgt, %pa, %pb : i32
      %same = arith.cmpi eq, %pa, %pb : i32
      %most = arith.maxsi %a, %b : i32
      %other = arith.select %further, %a, %b : i32
      %c = arith.select %same, %most, %other : i32
      gpu.yield %c : i32
    } : (i32) -> i32
    memref.store %r, %out[%at] : memref<?xi32>
    gpu.return
  }

  // Only the lanes that are there take part.
  gpu.func @those_that_are_there(%x: memref<?xi32>, %out: memref<?xi32>) kernel {
    %zero = arith.constant 0 : i32
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %positive = arith.cmpi sgt, %v, %zero : i32
    %r = scf.if %positive -> i32 {
      %s = gpu.subgroup_reduce add %v : (i32) -> i32
      scf.yield %s : i32
    } else {
      %s = gpu.subgroup_reduce minsi %v : (i32) -> i32
      scf.yield %s : i32
    }
    memref.store %r, %out[%at] : memref<?xi32>
    gpu.return
  }

  // Reductions of one type in turn use the same workgroup memory.
  gpu.func @one_after_the_other(%x: memref<?xi32>, %out: memref<?xi32>) kernel {
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %least = gpu.all_reduce minsi %v uniform {} : (i32) -> i32
    %d = arith.subi %v, %least : i32
    %sum = gpu.all_reduce add %d uniform {} : (i32) -> i32
    %e = arith.addi %d, %sum : i32
    %most = gpu.all_reduce maxsi %e uniform {} : (i32) -> i32
    memref.store %most, %out[%at] : memref<?xi32>
    gpu.return
  }

  gpu.func @in_a_loop(%x: memref<?xi32>, %times: index, %out: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %r = scf.for %i = %c0 to %times step %c1 iter_args(%a = %v) -> i32 {
      %s = gpu.all_reduce add %a uniform {} : (i32) -> i32
      %b = arith.xori %a, %s : i32
      scf.yield %b : i32
    }
    memref.store %r, %out[%at] : memref<?xi32>
    gpu.return
  }
