// scf.forall with the author's mapping: to blocks, and inside to threads.

// What a thread puts into a block's tile others take out of it.
func.func @transposed(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32>
  %m = memref.dim %x, %c1 : memref<?x?xf32>
  scf.forall (%i, %j) = (0, 0) to (%n, %m) step (8, 8) {
    %tile = memref.alloc() : memref<8x8xf32>
    scf.forall (%p, %q) in (8, 8) {
      %r = arith.addi %i, %p : index
      %c = arith.addi %j, %q : index
      %a = arith.cmpi slt, %r, %n : index
      %b = arith.cmpi slt, %c, %m : index
      %in = arith.andi %a, %b : i1
      scf.if %in {
        %v = memref.load %x[%r, %c] : memref<?x?xf32>
        memref.store %v, %tile[%p, %q] : memref<8x8xf32>
      }
    } {mapping = [#gpu.thread<y>, #gpu.thread<x>]}
    scf.forall (%p, %q) in (8, 8) {
      %r = arith.addi %j, %p : index
      %c = arith.addi %i, %q : index
      %a = arith.cmpi slt, %r, %m : index
      %b = arith.cmpi slt, %c, %n : index
      %in = arith.andi %a, %b : i1
      scf.if %in {
        %v = memref.load %tile[%q, %p] : memref<8x8xf32>
        memref.store %v, %y[%r, %c] : memref<?x?xf32>
      }
    } {mapping = [#gpu.thread<y>, #gpu.thread<x>]}
    memref.dealloc %tile : memref<8x8xf32>
  } {mapping = [#gpu.block<y>, #gpu.block<x>]}
  return
}

// Between the loops over threads, of which the second is a shorter one: operations that a block shares out, one
// that a thread does for all, a store.
func.func @shares(%x: memref<?x16xf32>, %y: memref<?x16xf32>, %z: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : memref<?x16xf32>
  scf.forall (%i) in (%n) {
    %row = memref.subview %x[%i, 0] [1, 16] [1, 1] : memref<?x16xf32> to memref<16xf32, strided<[1], offset: ?>>
    %out = memref.subview %y[%i, 0] [1, 16] [1, 1] : memref<?x16xf32> to memref<16xf32, strided<[1], offset: ?>>
    %tile = memref.alloc() : memref<16xf32>
    %sum = memref.alloc() : memref<f32>
    memref.copy %row, %tile : memref<16xf32, strided<[1], offset: ?>> to memref<16xf32>
    scf.forall (%t) in (16) {
      %v = memref.load %tile[%t] : memref<16xf32>
      %e = math.exp %v : f32
      memref.store %e, %tile[%t] : memref<16xf32>
    } {mapping = [#gpu.thread<x>]}
    memref.store %zero, %sum[] : memref<f32>
    linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> ()>], iterator_types = ["reduction"]}
        ins(%tile : memref<16xf32>) outs(%sum : memref<f32>) {
    ^bb0(%v: f32, %s: f32):
      %w = arith.addf %v, %s : f32
      linalg.yield %w : f32
    }
    scf.forall (%t) = (0) to (16) step (4) {
      %s = memref.load %sum[] : memref<f32>
      %part = memref.subview %tile[%t] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
      %to = memref.subview %out[%t] [4] [1]
          : memref<16xf32, strided<[1], offset: ?>> to memref<4xf32, strided<[1], offset: ?>>
      linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
          ins(%part : memref<4xf32, strided<[1], offset: ?>>) outs(%to : memref<4xf32, strided<[1], offset: ?>>) {
      ^bb0(%v: f32, %o: f32):
        %w = arith.divf %v, %s : f32
        linalg.yield %w : f32
      }
    } {mapping = [#gpu.thread<x>]}
    %total = memref.load %sum[] : memref<f32>
    memref.store %total, %z[%i] : memref<?xf32>
  } {mapping = [#gpu.block<x>]}
  return
}

// On tensors, as tiling leaves them: a tile of the sum stays where it is over the steps along %k, tiles of %a and
// %b are copied.
func.func @product(%a: tensor<?x32xf32>, %b: tensor<32x48xf32>) -> tensor<?x48xf32> {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %a, %c0 : tensor<?x32xf32>
  %e = tensor.empty(%n) : tensor<?x48xf32>
  %r = scf.forall (%i, %j) = (0, 0) to (%n, 48) step (4, 16) shared_outs(%o = %e) -> (tensor<?x48xf32>) {
    %place = tensor.extract_slice %o[%i, %j] [4, 16] [1, 1] : tensor<?x48xf32> to tensor<4x16xf32>
    %first = linalg.fill ins(%zero : f32) outs(%place : tensor<4x16xf32>) -> tensor<4x16xf32>
    %sum = scf.for %k = %c0 to %c32 step %c8 iter_args(%c = %first) -> (tensor<4x16xf32>) {
      %ak = tensor.extract_slice %a[%i, %k] [4, 8] [1, 1] : tensor<?x32xf32> to tensor<4x8xf32>
      %bk = tensor.extract_slice %b[%k, %j] [8, 16] [1, 1] : tensor<32x48xf32> to tensor<8x16xf32>
      %ae = tensor.empty() : tensor<4x8xf32>
      %be = tensor.empty() : tensor<8x16xf32>
      %at = linalg.copy ins(%ak : tensor<4x8xf32>) outs(%ae : tensor<4x8xf32>) -> tensor<4x8xf32>
      %bt = linalg.copy ins(%bk : tensor<8x16xf32>) outs(%be : tensor<8x16xf32>) -> tensor<8x16xf32>
      %next = scf.forall (%p, %q) in (4, 16) shared_outs(%d = %c) -> (tensor<4x16xf32>) {
        %one = tensor.extract_slice %d[%p, %q] [1, 1] [1, 1] : tensor<4x16xf32> to tensor<1x1xf32>
        %ap = tensor.extract_slice %at[%p, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<1x8xf32>
        %bq = tensor.extract_slice %bt[0, %q] [8, 1] [1, 1] : tensor<8x16xf32> to tensor<8x1xf32>
        %t = linalg.matmul ins(%ap, %bq : tensor<1x8xf32>, tensor<8x1xf32>)
            outs(%one : tensor<1x1xf32>) -> tensor<1x1xf32>
        scf.forall.in_parallel {
          tensor.parallel_insert_slice %t into %d[%p, %q] [1, 1] [1, 1] : tensor<1x1xf32> into tensor<4x16xf32>
        }
      } {mapping = [#gpu.thread<y>, #gpu.thread<x>]}
      scf.yield %next : tensor<4x16xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %sum into %o[%i, %j] [4, 16] [1, 1] : tensor<4x16xf32> into tensor<?x48xf32>
    }
  } {mapping = [#gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<?x48xf32>
}
