// Loops in the bodies of parallel loops that hand tensors on: in each thread's own memory.
#both = affine_map<(a, b) -> (a, b)>
#row = affine_map<(a, b) -> (a)>
#one = affine_map<(a) -> (a)>
#size = affine_map<(i)[n] -> (8, n - i)>

// Attention, a tile of keys at a time: the running maximum is read again when it has been made anew.
func.func @attention(%q: tensor<32x16xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>) -> tensor<32x16xf32> {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %n = tensor.dim %k, %c0 : tensor<?x16xf32>
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<32x16xf32>
  %r = scf.forall (%i) = (0) to (32) step (4) shared_outs(%o = %e) -> (tensor<32x16xf32>) {
    %mine = tensor.extract_slice %q[%i, 0] [4, 16] [1, 1] : tensor<32x16xf32> to tensor<4x16xf32>
    %flat = tensor.empty() : tensor<4xf32>
    %wide = tensor.empty() : tensor<4x16xf32>
    %m0 = linalg.fill ins(%least : f32) outs(%flat : tensor<4xf32>) -> tensor<4xf32>
    %l0 = linalg.fill ins(%zero : f32) outs(%flat : tensor<4xf32>) -> tensor<4xf32>
    %a0 = linalg.fill ins(%zero : f32) outs(%wide : tensor<4x16xf32>) -> tensor<4x16xf32>
    %m, %l, %a = scf.for %j = %c0 to %n step %c8 iter_args(%m = %m0, %l = %l0, %a = %a0)
        -> (tensor<4xf32>, tensor<4xf32>, tensor<4x16xf32>) {
      %t = affine.min #size(%j)[%n]
      %keys = tensor.extract_slice %k[%j, 0] [%t, 16] [1, 1] : tensor<?x16xf32> to tensor<?x16xf32>
      %values = tensor.extract_slice %v[%j, 0] [%t, 16] [1, 1] : tensor<?x16xf32> to tensor<?x16xf32>
      %tile = tensor.empty(%t) : tensor<4x?xf32>
      %s0 = linalg.fill ins(%zero : f32) outs(%tile : tensor<4x?xf32>) -> tensor<4x?xf32>
      %s = linalg.matmul indexing_maps = [affine_map<(a, b, c) -> (a, c)>, affine_map<(a, b, c) -> (b, c)>,
                                          affine_map<(a, b, c) -> (a, b)>]
          ins(%mine, %keys : tensor<4x16xf32>, tensor<?x16xf32>) outs(%s0 : tensor<4x?xf32>) -> tensor<4x?xf32>
      %m1 = linalg.generic {indexing_maps = [#both, #row], iterator_types = ["parallel", "reduction"]}
          ins(%s : tensor<4x?xf32>) outs(%m : tensor<4xf32>) {
      ^bb0(%x: f32, %y: f32):
        %z = arith.maximumf %x, %y : f32
        linalg.yield %z : f32
      } -> tensor<4xf32>
      %p = linalg.generic {indexing_maps = [#both, #row, #both], iterator_types = ["parallel", "parallel"]}
          ins(%s, %m1 : tensor<4x?xf32>, tensor<4xf32>) outs(%tile : tensor<4x?xf32>) {
      ^bb0(%x: f32, %y: f32, %w: f32):
        %d = arith.subf %x, %y : f32
        %z = math.exp %d : f32
        linalg.yield %z : f32
      } -> tensor<4x?xf32>
      %less = linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]}
          ins(%m, %m1 : tensor<4xf32>, tensor<4xf32>) outs(%flat : tensor<4xf32>) {
      ^bb0(%x: f32, %y: f32, %w: f32):
        %d = arith.subf %x, %y : f32
        %z = math.exp %d : f32
        linalg.yield %z : f32
      } -> tensor<4xf32>
      %l1 = linalg.mul ins(%l, %less : tensor<4xf32>, tensor<4xf32>) outs(%flat : tensor<4xf32>) -> tensor<4xf32>
      %l2 = linalg.generic {indexing_maps = [#both, #row], iterator_types = ["parallel", "reduction"]}
          ins(%p : tensor<4x?xf32>) outs(%l1 : tensor<4xf32>) {
      ^bb0(%x: f32, %y: f32):
        %z = arith.addf %x, %y : f32
        linalg.yield %z : f32
      } -> tensor<4xf32>
      %a1 = linalg.generic {indexing_maps = [#row, #both, #both], iterator_types = ["parallel", "parallel"]}
          ins(%less, %a : tensor<4xf32>, tensor<4x16xf32>) outs(%wide : tensor<4x16xf32>) {
      ^bb0(%x: f32, %y: f32, %w: f32):
        %z = arith.mulf %x, %y : f32
        linalg.yield %z : f32
      } -> tensor<4x16xf32>
      %a2 = linalg.matmul ins(%p, %values : tensor<4x?xf32>, tensor<?x16xf32>)
          outs(%a1 : tensor<4x16xf32>) -> tensor<4x16xf32>
      scf.yield %m1, %l2, %a2 : tensor<4xf32>, tensor<4xf32>, tensor<4x16xf32>
    }
    %out = linalg.generic {indexing_maps = [#row, #both, #both], iterator_types = ["parallel", "parallel"]}
        ins(%l, %a : tensor<4xf32>, tensor<4x16xf32>) outs(%wide : tensor<4x16xf32>) {
    ^bb0(%x: f32, %y: f32, %w: f32):
      %z = arith.divf %y, %x : f32
      linalg.yield %z : f32
    } -> tensor<4x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %out into %o[%i, 0] [4, 16] [1, 1] : tensor<4x16xf32> into tensor<32x16xf32>
    }
  }
  return %r : tensor<32x16xf32>
}

// What an iteration makes, it makes of another order of what came.
func.func @swapped(%x: tensor<4x16xf32>, %n: index) -> tensor<4x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4x16xf32>
  %r = scf.forall (%i) in (4) shared_outs(%o = %e) -> tensor<4x16xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, 16][1, 1] : tensor<4x16xf32> to tensor<16xf32>
    %p = scf.for %k = %c0 to %n step %c1 iter_args(%a = %s) -> tensor<16xf32> {
      %q = tensor.generate {
      ^bb0(%j: index):
        %j1 = arith.xori %j, %c1 : index
        %v = tensor.extract %a[%j1] : tensor<16xf32>
        tensor.yield %v : f32
      } : tensor<16xf32>
      scf.yield %q : tensor<16xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, 16][1, 1] : tensor<16xf32> into tensor<4x16xf32>
    }
  }
  return %r : tensor<4x16xf32>
}

// Fibonacci's numbers: one place gets what the other had. The tiles at the end are smaller.
func.func @exchanged(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %length = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%length) : tensor<?xf32>
  %r = scf.forall (%i) = (0) to (%length) step (8) shared_outs(%o = %e) -> tensor<?xf32> {
    %t = affine.min #size(%i)[%length]
    %u = tensor.extract_slice %x[%i] [%t] [1] : tensor<?xf32> to tensor<?xf32>
    %v = tensor.extract_slice %y[%i] [%t] [1] : tensor<?xf32> to tensor<?xf32>
    %p:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %u, %b = %v) -> (tensor<?xf32>, tensor<?xf32>) {
      %f = tensor.empty(%t) : tensor<?xf32>
      %c = linalg.add ins(%a, %b : tensor<?xf32>, tensor<?xf32>) outs(%f : tensor<?xf32>) -> tensor<?xf32>
      scf.yield %b, %c : tensor<?xf32>, tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p#0 into %o[%i] [%t] [1] : tensor<?xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}

// The same until a number is reached.
func.func @until(%x: tensor<4x4xi32>, %limit: i32) -> tensor<4x4xi32> {
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<4x4xi32>
  %r = scf.forall (%i) in (4) shared_outs(%o = %e) -> tensor<4x4xi32> {
    %s = tensor.extract_slice %x[%i, 0][1, 4][1, 1] : tensor<4x4xi32> to tensor<4xi32>
    %p = scf.while (%a = %s) : (tensor<4xi32>) -> tensor<4xi32> {
      %first = tensor.extract %a[%c0] : tensor<4xi32>
      %more = arith.cmpi slt, %first, %limit : i32
      scf.condition(%more) %a : tensor<4xi32>
    } do {
    ^bb0(%a: tensor<4xi32>):
      %f = tensor.empty() : tensor<4xi32>
      %b = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
          ins(%a : tensor<4xi32>) outs(%f : tensor<4xi32>) {
      ^bb0(%now: i32, %w: i32):
        %last = arith.constant 3 : index
        %index = linalg.index 0 : index
        %other = arith.subi %last, %index : index
        %v = tensor.extract %a[%other] : tensor<4xi32>
        %sum = arith.addi %now, %v : i32
        linalg.yield %sum : i32
      } -> tensor<4xi32>
      scf.yield %b : tensor<4xi32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, 4][1, 1] : tensor<4xi32> into tensor<4x4xi32>
    }
  }
  return %r : tensor<4x4xi32>
}

// The last of a sequence and the last one below a limit, and the sequence begun anew now and then: what a branch keeps is
// what its iteration began with, and what it takes is used again.
func.func @kept(%x: tensor<4x16xf32>, %n: index, %limit: f32) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4x16xf32>
  %r:2 = scf.forall (%i) in (4) shared_outs(%o = %e, %p = %e) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 16] [1, 1] : tensor<4x16xf32> to tensor<16xf32>
    %last:2 = scf.for %k = %c0 to %n step %c1 iter_args(%v = %row, %w = %row) -> (tensor<16xf32>, tensor<16xf32>) {
      %d = arith.addf %v, %v : tensor<16xf32>
      %first = tensor.extract %d[%c0] : tensor<16xf32>
      %below = arith.cmpf olt, %first, %limit : f32
      %kept = scf.if %below -> (tensor<16xf32>) {
        scf.yield %d : tensor<16xf32>
      } else {
        scf.yield %w : tensor<16xf32>
      }
      scf.yield %d, %kept : tensor<16xf32>, tensor<16xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %last#0 into %o[%i, 0] [1, 16] [1, 1] : tensor<16xf32> into tensor<4x16xf32>
      tensor.parallel_insert_slice %last#1 into %p[%i, 0] [1, 16] [1, 1] : tensor<16xf32> into tensor<4x16xf32>
    }
  }
  return %r#0, %r#1 : tensor<4x16xf32>, tensor<4x16xf32>
}

func.func @anew(%x: tensor<4x16xf32>, %y: tensor<16xf32>, %n: index, %limit: f32) -> tensor<4x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.forall (%i) in (4) shared_outs(%o = %x) -> (tensor<4x16xf32>) {
    %row = tensor.extract_slice %o[%i, 0] [1, 16] [1, 1] : tensor<4x16xf32> to tensor<16xf32>
    %last = scf.for %k = %c0 to %n step %c1 iter_args(%v = %y) -> (tensor<16xf32>) {
      %first = tensor.extract %v[%c0] : tensor<16xf32>
      %below = arith.cmpf olt, %first, %limit : f32
      %from = scf.if %below -> (tensor<16xf32>) {
        scf.yield %v : tensor<16xf32>
      } else {
        scf.yield %row : tensor<16xf32>
      }
      %d = arith.addf %from, %from : tensor<16xf32>
      scf.yield %d : tensor<16xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %last into %o[%i, 0] [1, 16] [1, 1] : tensor<16xf32> into tensor<4x16xf32>
    }
  }
  return %r : tensor<4x16xf32>
}
