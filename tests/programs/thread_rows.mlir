// Rows that a thread each goes through, in the manner of programs that were written for one row.
#id = affine_map<(a) -> (a)>

// Rows by insertion: an inner loop goes on with what the outer one carries.
func.func @sorted(%x: tensor<6x16xf32>) -> tensor<6x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %e = tensor.empty() : tensor<6x16xf32>
  %r = scf.forall (%i) in (6) shared_outs(%o = %e) -> tensor<6x16xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, 16][1, 1] : tensor<6x16xf32> to tensor<16xf32>
    %p = scf.for %k = %c1 to %c16 step %c1 iter_args(%a = %s) -> tensor<16xf32> {
      %q:2 = scf.while (%b = %a, %j = %k) : (tensor<16xf32>, index) -> (tensor<16xf32>, index) {
        %pos = arith.cmpi ugt, %j, %c0 : index
        %more = scf.if %pos -> i1 {
          %j1 = arith.subi %j, %c1 : index
          %l = tensor.extract %b[%j1] : tensor<16xf32>
          %rr = tensor.extract %b[%j] : tensor<16xf32>
          %g = arith.cmpf ogt, %l, %rr : f32
          scf.yield %g : i1
        } else {
          %no = arith.constant false
          scf.yield %no : i1
        }
        scf.condition(%more) %b, %j : tensor<16xf32>, index
      } do {
      ^bb0(%b: tensor<16xf32>, %j: index):
        %j1 = arith.subi %j, %c1 : index
        %l = tensor.extract %b[%j1] : tensor<16xf32>
        %rr = tensor.extract %b[%j] : tensor<16xf32>
        %b1 = tensor.insert %rr into %b[%j1] : tensor<16xf32>
        %b2 = tensor.insert %l into %b1[%j] : tensor<16xf32>
        scf.yield %b2, %j1 : tensor<16xf32>, index
      }
      scf.yield %q#0 : tensor<16xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, 16][1, 1] : tensor<16xf32> into tensor<6x16xf32>
    }
  }
  return %r : tensor<6x16xf32>
}

// The same of rows whose length the call tells.
func.func @sorted_any(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %w) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, %w][1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %p = scf.for %k = %c1 to %w step %c1 iter_args(%a = %s) -> tensor<?xf32> {
      %q:2 = scf.while (%b = %a, %j = %k) : (tensor<?xf32>, index) -> (tensor<?xf32>, index) {
        %pos = arith.cmpi ugt, %j, %c0 : index
        %more = scf.if %pos -> i1 {
          %j1 = arith.subi %j, %c1 : index
          %l = tensor.extract %b[%j1] : tensor<?xf32>
          %rr = tensor.extract %b[%j] : tensor<?xf32>
          %g = arith.cmpf ogt, %l, %rr : f32
          scf.yield %g : i1
        } else {
          %no = arith.constant false
          scf.yield %no : i1
        }
        scf.condition(%more) %b, %j : tensor<?xf32>, index
      } do {
      ^bb0(%b: tensor<?xf32>, %j: index):
        %j1 = arith.subi %j, %c1 : index
        %l = tensor.extract %b[%j1] : tensor<?xf32>
        %rr = tensor.extract %b[%j] : tensor<?xf32>
        %b1 = tensor.insert %rr into %b[%j1] : tensor<?xf32>
        %b2 = tensor.insert %l into %b1[%j] : tensor<?xf32>
        scf.yield %b2, %j1 : tensor<?xf32>, index
      }
      scf.yield %q#0 : tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, %w][1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

// The largest four, from the largest down: a branch in the inner loop.
func.func @largest(%x: tensor<6x16xf32>) -> tensor<6x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %e = tensor.empty() : tensor<6x4xf32>
  %r = scf.forall (%i) in (6) shared_outs(%o = %e) -> tensor<6x4xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, 16][1, 1] : tensor<6x16xf32> to tensor<16xf32>
    %least = arith.constant -1.0e30 : f32
    %em = tensor.empty() : tensor<4xf32>
    %z = linalg.fill ins(%least : f32) outs(%em : tensor<4xf32>) -> tensor<4xf32>
    %p = scf.for %k = %c0 to %c16 step %c1 iter_args(%a = %z) -> (tensor<4xf32>) {
      %v = tensor.extract %s[%k] : tensor<16xf32>
      %b, %lastv = scf.for %j = %c0 to %c4 step %c1 iter_args(%b = %a, %cv = %v) -> (tensor<4xf32>, f32) {
        %u = tensor.extract %b[%j] : tensor<4xf32>
        %g = arith.cmpf ogt, %cv, %u : f32
        %nb, %nv = scf.if %g -> (tensor<4xf32>, f32) {
          %t = tensor.insert %cv into %b[%j] : tensor<4xf32>
          scf.yield %t, %u : tensor<4xf32>, f32
        } else {
          scf.yield %b, %cv : tensor<4xf32>, f32
        }
        scf.yield %nb, %nv : tensor<4xf32>, f32
      }
      scf.yield %b : tensor<4xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, 4][1, 1] : tensor<4xf32> into tensor<6x4xf32>
    }
  }
  return %r : tensor<6x4xf32>
}

// Cholesky's factors of matrices of 4 x 4, a row each.
func.func @factors(%x: tensor<6x16xf32>) -> tensor<6x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x16xf32>
  %r = scf.forall (%i) in (6) shared_outs(%o = %e) -> tensor<6x16xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, 16][1, 1] : tensor<6x16xf32> to tensor<16xf32>
    %m0 = tensor.expand_shape %s [[0, 1]] output_shape [4, 4] : tensor<16xf32> into tensor<4x4xf32>
    %em = tensor.empty() : tensor<4x4xf32>
    %z = linalg.fill ins(%zero : f32) outs(%em : tensor<4x4xf32>) -> tensor<4x4xf32>
    %q = scf.for %j = %c0 to %c4 step %c1 iter_args(%l = %z) -> (tensor<4x4xf32>) {
      %q2 = scf.for %k = %j to %c4 step %c1 iter_args(%l2 = %l) -> (tensor<4x4xf32>) {
        %sum = scf.for %t = %c0 to %j step %c1 iter_args(%acc = %zero) -> f32 {
          %u = tensor.extract %l2[%k, %t] : tensor<4x4xf32>
          %v = tensor.extract %l2[%j, %t] : tensor<4x4xf32>
          %uv = arith.mulf %u, %v : f32
          %ac = arith.addf %acc, %uv : f32
          scf.yield %ac : f32
        }
        %akj = tensor.extract %m0[%k, %j] : tensor<4x4xf32>
        %d = arith.subf %akj, %sum : f32
        %dg = arith.cmpi eq, %k, %j : index
        %val = scf.if %dg -> f32 {
          %sq = math.sqrt %d : f32
          scf.yield %sq : f32
        } else {
          %ljj = tensor.extract %l2[%j, %j] : tensor<4x4xf32>
          %dv = arith.divf %d, %ljj : f32
          scf.yield %dv : f32
        }
        %l3 = tensor.insert %val into %l2[%k, %j] : tensor<4x4xf32>
        scf.yield %l3 : tensor<4x4xf32>
      }
      scf.yield %q2 : tensor<4x4xf32>
    }
    %p = tensor.collapse_shape %q [[0, 1]] : tensor<4x4xf32> into tensor<16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, 16][1, 1] : tensor<16xf32> into tensor<6x16xf32>
    }
  }
  return %r : tensor<6x16xf32>
}

// Each step reads the last one: the inner loop has a copy.
func.func @smoothed(%x: tensor<6x16xf32>) -> tensor<6x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %half = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<6x16xf32>
  %r = scf.forall (%i) in (6) shared_outs(%o = %e) -> tensor<6x16xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, 16][1, 1] : tensor<6x16xf32> to tensor<16xf32>
    %c6 = arith.constant 6 : index
    %last = arith.subi %c16, %c1 : index
    %p = scf.for %k = %c0 to %c6 step %c1 iter_args(%a = %s) -> tensor<16xf32> {
      %q = scf.for %j = %c1 to %last step %c1 iter_args(%b = %a) -> tensor<16xf32> {
        %jl = arith.subi %j, %c1 : index
        %jr = arith.addi %j, %c1 : index
        %l = tensor.extract %a[%jl] : tensor<16xf32>
        %rr = tensor.extract %a[%jr] : tensor<16xf32>
        %sm = arith.addf %l, %rr : f32
        %h = arith.mulf %sm, %half : f32
        %b2 = tensor.insert %h into %b[%j] : tensor<16xf32>
        scf.yield %b2 : tensor<16xf32>
      }
      scf.yield %q : tensor<16xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, 16][1, 1] : tensor<16xf32> into tensor<6x16xf32>
    }
  }
  return %r : tensor<6x16xf32>
}

// Viterbi: scores that are made anew in each step, and where they came from.
func.func @likeliest(%x: tensor<6x16xf32>) -> tensor<6x16xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c15 = arith.constant 15 : index
  %c16 = arith.constant 16 : index
  %i0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<6x16xi32>
  %r = scf.forall (%i) in (6) shared_outs(%o = %e) -> tensor<6x16xi32> {
    %s = tensor.extract_slice %x[%i, 0][1, 16][1, 1] : tensor<6x16xf32> to tensor<16xf32>
    %least = arith.constant -1.0e30 : f32
    %em = tensor.empty() : tensor<4xf32>
    %x0 = tensor.extract %s[%c0] : tensor<16xf32>
    %sc0 = tensor.generate {
    ^bb0(%j: index):
      %ji = arith.index_cast %j : index to i32
      %jf = arith.sitofp %ji : i32 to f32
      %d = arith.subf %x0, %jf : f32
      %ad = math.absf %d : f32
      %nd = arith.negf %ad : f32
      tensor.yield %nd : f32
    } : tensor<4xf32>
    %bpe = tensor.empty() : tensor<16x4xi32>
    %bp0 = linalg.fill ins(%i0 : i32) outs(%bpe : tensor<16x4xi32>) -> tensor<16x4xi32>
    %q:2 = scf.for %t = %c1 to %c16 step %c1 iter_args(%sc = %sc0, %bp = %bp0) -> (tensor<4xf32>, tensor<16x4xi32>) {
      %xt = tensor.extract %s[%t] : tensor<16xf32>
      %nw:2 = scf.for %j = %c0 to %c4 step %c1 iter_args(%ns = %em, %b = %bp) -> (tensor<4xf32>, tensor<16x4xi32>) {
        %ji = arith.index_cast %j : index to i32
        %jf = arith.sitofp %ji : i32 to f32
        %best:2 = scf.for %k = %c0 to %c4 step %c1 iter_args(%m = %least, %mi = %i0) -> (f32, i32) {
          %v = tensor.extract %sc[%k] : tensor<4xf32>
          %ki = arith.index_cast %k : index to i32
          %kf = arith.sitofp %ki : i32 to f32
          %d = arith.subf %kf, %jf : f32
          %ad = math.absf %d : f32
          %c = arith.subf %v, %ad : f32
          %g = arith.cmpf ogt, %c, %m : f32
          %m2 = arith.select %g, %c, %m : f32
          %mi2 = arith.select %g, %ki, %mi : i32
          scf.yield %m2, %mi2 : f32, i32
        }
        %d = arith.subf %xt, %jf : f32
        %ad = math.absf %d : f32
        %v = arith.subf %best#0, %ad : f32
        %ns2 = tensor.insert %v into %ns[%j] : tensor<4xf32>
        %b2 = tensor.insert %best#1 into %b[%t, %j] : tensor<16x4xi32>
        scf.yield %ns2, %b2 : tensor<4xf32>, tensor<16x4xi32>
      }
      scf.yield %nw#0, %nw#1 : tensor<4xf32>, tensor<16x4xi32>
    }
    %best:2 = scf.for %k = %c0 to %c4 step %c1 iter_args(%m = %least, %mi = %i0) -> (f32, i32) {
      %c = tensor.extract %q#0[%k] : tensor<4xf32>
      %ki = arith.index_cast %k : index to i32
      %g = arith.cmpf ogt, %c, %m : f32
      %m2 = arith.select %g, %c, %m : f32
      %mi2 = arith.select %g, %ki, %mi : i32
      scf.yield %m2, %mi2 : f32, i32
    }
    %pe = tensor.empty() : tensor<16xi32>
    %p1 = tensor.insert %best#1 into %pe[%c15] : tensor<16xi32>
    %p, %z = scf.for %k = %c0 to %c15 step %c1 iter_args(%a = %p1, %st = %best#1) -> (tensor<16xi32>, i32) {
      %t = arith.subi %c15, %k : index
      %sti = arith.index_cast %st : i32 to index
      %n = tensor.extract %q#1[%t, %sti] : tensor<16x4xi32>
      %t1 = arith.subi %t, %c1 : index
      %a2 = tensor.insert %n into %a[%t1] : tensor<16xi32>
      scf.yield %a2, %n : tensor<16xi32>, i32
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, 16][1, 1] : tensor<16xi32> into tensor<6x16xi32>
    }
  }
  return %r : tensor<6x16xi32>
}

// Newton's iteration, whose condition computes what it hands on.
func.func @roots(%x: tensor<6x16xf32>) -> tensor<6x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %half = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<6x16xf32>
  %r = scf.forall (%i) in (6) shared_outs(%o = %e) -> tensor<6x16xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, 16][1, 1] : tensor<6x16xf32> to tensor<16xf32>
    %q:2 = scf.while (%a = %s, %it = %c0) : (tensor<16xf32>, index) -> (tensor<16xf32>, index) {
      %em = tensor.empty() : tensor<16xf32>
      %b = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%a, %s : tensor<16xf32>, tensor<16xf32>) outs(%em : tensor<16xf32>) {
      ^bb0(%c: f32, %v: f32, %w: f32):
        %d = arith.divf %v, %c : f32
        %sum = arith.addf %c, %d : f32
        %nx = arith.mulf %sum, %half : f32
        linalg.yield %nx : f32
      } -> tensor<16xf32>
      %it2 = arith.addi %it, %c1 : index
      %more = arith.cmpi ult, %it2, %c16 : index
      scf.condition(%more) %b, %it2 : tensor<16xf32>, index
    } do {
    ^bb0(%a: tensor<16xf32>, %it: index):
      scf.yield %a, %it : tensor<16xf32>, index
    }
    %p = tensor.cast %q#0 : tensor<16xf32> to tensor<16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, 16][1, 1] : tensor<16xf32> into tensor<6x16xf32>
    }
  }
  return %r : tensor<6x16xf32>
}

// Two rows that change places there.
func.func @exchanged(%x: tensor<6x16xf32>) -> tensor<6x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c15 = arith.constant 15 : index
  %e = tensor.empty() : tensor<6x16xf32>
  %r = scf.forall (%i) in (6) shared_outs(%o = %e) -> tensor<6x16xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, 16][1, 1] : tensor<6x16xf32> to tensor<16xf32>
    %c6 = arith.constant 6 : index
    %b0 = tensor.generate {
    ^bb0(%j: index):
      %jj = arith.subi %c15, %j : index
      %vv = tensor.extract %s[%jj] : tensor<16xf32>
      tensor.yield %vv : f32
    } : tensor<16xf32>
    %em = tensor.empty() : tensor<16xf32>
    %q:3 = scf.while (%a = %s, %b = %b0, %k = %c0) : (tensor<16xf32>, tensor<16xf32>, index) -> (tensor<16xf32>, tensor<16xf32>, index) {
      %c = linalg.add ins(%a, %b : tensor<16xf32>, tensor<16xf32>) outs(%em : tensor<16xf32>) -> tensor<16xf32>
      %k1 = arith.addi %k, %c1 : index
      %more = arith.cmpi ult, %k1, %c6 : index
      scf.condition(%more) %b, %c, %k1 : tensor<16xf32>, tensor<16xf32>, index
    } do {
    ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>, %k: index):
      scf.yield %a, %b, %k : tensor<16xf32>, tensor<16xf32>, index
    }
    %p = tensor.cast %q#0 : tensor<16xf32> to tensor<16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, 16][1, 1] : tensor<16xf32> into tensor<6x16xf32>
    }
  }
  return %r : tensor<6x16xf32>
}

// What a thread keeps has the length of the array's rows.
func.func @reversed(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %w) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, %w][1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %em = tensor.empty(%w) : tensor<?xf32>
    %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%s : tensor<?xf32>) outs(%em : tensor<?xf32>) {
      ^bb0(%c: f32, %u: f32):
        %d = arith.mulf %c, %c : f32
        linalg.yield %d : f32
      } -> tensor<?xf32>
    %p = tensor.generate %w {
    ^bb0(%j: index):
      %j1 = arith.addi %j, %c1 : index
      %k = arith.subi %w, %j1 : index
      %v = tensor.extract %t[%k] : tensor<?xf32>
      tensor.yield %v : f32
    } : tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, %w][1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

// A tridiagonal system of each row: forth and back.
func.func @solved(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %w) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, %w][1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %b = arith.constant 2.5 : f32
    %m1 = arith.constant -1.0 : f32
    %em = tensor.empty(%w) : tensor<?xf32>
    %cz = linalg.fill ins(%zero : f32) outs(%em : tensor<?xf32>) -> tensor<?xf32>
    %last = arith.subi %w, %c1 : index
    %fw:2 = scf.for %k = %c0 to %w step %c1 iter_args(%cp = %cz, %dp = %cz) -> (tensor<?xf32>, tensor<?xf32>) {
      %isf = arith.cmpi eq, %k, %c0 : index
      %pc, %pd = scf.if %isf -> (f32, f32) {
        scf.yield %zero, %zero : f32, f32
      } else {
        %k1 = arith.subi %k, %c1 : index
        %u = tensor.extract %cp[%k1] : tensor<?xf32>
        %v = tensor.extract %dp[%k1] : tensor<?xf32>
        scf.yield %u, %v : f32, f32
      }
      %den = arith.addf %b, %pc : f32
      %nc = arith.divf %m1, %den : f32
      %dk = tensor.extract %s[%k] : tensor<?xf32>
      %num = arith.addf %dk, %pd : f32
      %nd = arith.divf %num, %den : f32
      %c2_ = tensor.insert %nc into %cp[%k] : tensor<?xf32>
      %d2_ = tensor.insert %nd into %dp[%k] : tensor<?xf32>
      scf.yield %c2_, %d2_ : tensor<?xf32>, tensor<?xf32>
    }
    %p, %ig = scf.for %k = %c0 to %w step %c1 iter_args(%a = %cz, %nx = %zero) -> (tensor<?xf32>, f32) {
      %j = arith.subi %last, %k : index
      %cc = tensor.extract %fw#0[%j] : tensor<?xf32>
      %dd = tensor.extract %fw#1[%j] : tensor<?xf32>
      %t = arith.mulf %cc, %nx : f32
      %xx = arith.subf %dd, %t : f32
      %a2 = tensor.insert %xx into %a[%j] : tensor<?xf32>
      scf.yield %a2, %xx : tensor<?xf32>, f32
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, %w][1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

// Lengths that only the thread reads: a part of the row.
func.func @ragged(%x: tensor<6x16xf32>, %len: tensor<6xi32>) -> tensor<6x16xf32> {
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<6x16xf32>
  %r = scf.forall (%i) in (6) shared_outs(%o = %e) -> tensor<6x16xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, 16][1, 1] : tensor<6x16xf32> to tensor<16xf32>
    %li = tensor.extract %len[%i] : tensor<6xi32>
    %l = arith.index_cast %li : i32 to index
    %sub = tensor.extract_slice %s[0][%l][1] : tensor<16xf32> to tensor<?xf32>
    %em = tensor.empty(%l) : tensor<?xf32>
    %t = linalg.add ins(%sub, %sub : tensor<?xf32>, tensor<?xf32>) outs(%em : tensor<?xf32>) -> tensor<?xf32>
    %rev = tensor.generate %l {
    ^bb0(%j: index):
      %j1 = arith.addi %j, %c1 : index
      %jj = arith.subi %l, %j1 : index
      %vv = tensor.extract %t[%jj] : tensor<?xf32>
      tensor.yield %vv : f32
    } : tensor<?xf32>
    %p = tensor.insert_slice %rev into %s[0][%l][1] : tensor<?xf32> into tensor<16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, 16][1, 1] : tensor<16xf32> into tensor<6x16xf32>
    }
  }
  return %r : tensor<6x16xf32>
}

// A differential equation, by steps of two stages.
func.func @stepped(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %w) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, %w][1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %h = arith.constant 0.1 : f32
    %hh = arith.constant 0.05 : f32
    %p = scf.for %k = %c0 to %c4 step %c1 iter_args(%y = %s) -> (tensor<?xf32>) {
      %em = tensor.empty(%w) : tensor<?xf32>
      %k1 = arith.negf %y : tensor<?xf32>
      %k2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%y, %k1 : tensor<?xf32>, tensor<?xf32>) outs(%em : tensor<?xf32>) {
      ^bb0(%a: f32, %b: f32, %uu: f32):
        %c = arith.mulf %hh, %b : f32
        %d = arith.addf %a, %c : f32
        %n_ = arith.negf %d : f32
        linalg.yield %n_ : f32
      } -> tensor<?xf32>
      %y2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%y, %k2 : tensor<?xf32>, tensor<?xf32>) outs(%em : tensor<?xf32>) {
      ^bb0(%a: f32, %b: f32, %uu: f32):
        %c = arith.mulf %h, %b : f32
        %d = arith.addf %a, %c : f32
        linalg.yield %d : f32
      } -> tensor<?xf32>
      scf.yield %y2 : tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, %w][1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

// Sums of neighbours, of which the first and the last have one.
func.func @neighbours(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %w) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, %w][1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %pd = tensor.pad %s low[1] high[1] {
    ^bb0(%j: index):
      tensor.yield %zero : f32
    } : tensor<?xf32> to tensor<?xf32>
    %l = tensor.extract_slice %pd[0][%w][1] : tensor<?xf32> to tensor<?xf32>
    %rr = tensor.extract_slice %pd[2][%w][1] : tensor<?xf32> to tensor<?xf32>
    %em = tensor.empty(%w) : tensor<?xf32>
    %p = linalg.add ins(%l, %rr : tensor<?xf32>, tensor<?xf32>) outs(%em : tensor<?xf32>) -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, %w][1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

// Shares of a row in its sum, as often as the function around it says: functions that threads call.
func.func private @shares(%row: tensor<?xf32>, %w: index) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%row : tensor<?xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<f32>
  %s = tensor.extract %sum[] : tensor<f32>
  %em = tensor.empty(%w) : tensor<?xf32>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%row : tensor<?xf32>) outs(%em : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.divf %a, %s : f32
    linalg.yield %c : f32
  } -> tensor<?xf32>
  return %q : tensor<?xf32>
}
func.func private @squared_shares(%row: tensor<?xf32>, %w: index) -> tensor<?xf32> {
  %p = func.call @shares(%row, %w) : (tensor<?xf32>, index) -> tensor<?xf32>
  %em = tensor.empty(%w) : tensor<?xf32>
  %q = linalg.mul ins(%p, %p : tensor<?xf32>, tensor<?xf32>) outs(%em : tensor<?xf32>) -> tensor<?xf32>
  %r = func.call @shares(%q, %w) : (tensor<?xf32>, index) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @sharpened(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %w) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, %w][1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %p = func.call @squared_shares(%s, %w) : (tensor<?xf32>, index) -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, %w][1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}


// What the condition makes has other elements than what the loop begins with.
func.func @whole_parts(%x: tensor<?x?xf32>) -> tensor<?x?xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %w) : tensor<?x?xi32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?x?xi32> {
    %s = tensor.extract_slice %x[%i, 0][1, %w][1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %em = tensor.empty(%w) : tensor<?xi32>
    %q:3 = scf.while (%a = %s, %k = %c0) : (tensor<?xf32>, index) -> (tensor<?xf32>, tensor<?xi32>, index) {
      %m = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : tensor<?xf32>) outs(%em : tensor<?xi32>) {
      ^bb0(%v: f32, %u: i32):
        %z = arith.fptosi %v : f32 to i32
        linalg.yield %z : i32
      } -> tensor<?xi32>
      %k1 = arith.addi %k, %c1 : index
      %more = arith.cmpi ult, %k1, %c3 : index
      scf.condition(%more) %a, %m, %k1 : tensor<?xf32>, tensor<?xi32>, index
    } do {
    ^bb0(%a: tensor<?xf32>, %m: tensor<?xi32>, %k: index):
      %em2 = tensor.empty(%w) : tensor<?xf32>
      %b = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%a, %m : tensor<?xf32>, tensor<?xi32>) outs(%em2 : tensor<?xf32>) {
      ^bb0(%v: f32, %mm: i32, %u: f32):
        %z = arith.sitofp %mm : i32 to f32
        %y = arith.addf %z, %v : f32
        linalg.yield %y : f32
      } -> tensor<?xf32>
      scf.yield %b, %k : tensor<?xf32>, index
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %q#1 into %o[%i, 0][1, %w][1, 1] : tensor<?xi32> into tensor<?x?xi32>
    }
  }
  return %r : tensor<?x?xi32>
}


// Elements that do not lie as close as their bits.
func.func @of_24_bits(%x: tensor<?x?xi32>) -> tensor<?x?xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xi32>
  %w = tensor.dim %x, %c1 : tensor<?x?xi32>
  %e = tensor.empty(%n, %w) : tensor<?x?xi32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?x?xi32> {
    %t = tensor.generate %w {
    ^bb0(%j: index):
      %v = tensor.extract %x[%i, %j] : tensor<?x?xi32>
      %z = arith.trunci %v : i32 to i24
      tensor.yield %z : i24
    } : tensor<?xi24>
    %p = tensor.generate %w {
    ^bb0(%j: index):
      %j1 = arith.addi %j, %c1 : index
      %k = arith.subi %w, %j1 : index
      %v = tensor.extract %t[%k] : tensor<?xi24>
      %z = arith.extsi %v : i24 to i32
      tensor.yield %z : i32
    } : tensor<?xi32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, %w][1, 1] : tensor<?xi32> into tensor<?x?xi32>
    }
  }
  return %r : tensor<?x?xi32>
}


// A few elements of rows that are longer than a thread's memory.
func.func @window(%x: tensor<4x20000xf32>, %w: index) -> tensor<4x?xf32> {
  %c1 = arith.constant 1 : index
  %e = tensor.empty(%w) : tensor<4x?xf32>
  %r = scf.forall (%i) in (4) shared_outs(%o = %e) -> tensor<4x?xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, %w][1, 1] : tensor<4x20000xf32> to tensor<?xf32>
    %em = tensor.empty(%w) : tensor<?xf32>
    %t = linalg.mul ins(%s, %s : tensor<?xf32>, tensor<?xf32>) outs(%em : tensor<?xf32>) -> tensor<?xf32>
    %p = tensor.generate %w {
    ^bb0(%j: index):
      %j1 = arith.addi %j, %c1 : index
      %k = arith.subi %w, %j1 : index
      %v = tensor.extract %t[%k] : tensor<?xf32>
      tensor.yield %v : f32
    } : tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, %w][1, 1] : tensor<?xf32> into tensor<4x?xf32>
    }
  }
  return %r : tensor<4x?xf32>
}

// Lengths that only the thread reads, of a part whose length it reads as well.
func.func @part_of_part(%x: tensor<6x16xf32>, %len: tensor<6xi32>, %len2: tensor<6xi32>) -> tensor<6x16xf32> {
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<6x16xf32>
  %r = scf.forall (%i) in (6) shared_outs(%o = %e) -> tensor<6x16xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, 16][1, 1] : tensor<6x16xf32> to tensor<16xf32>
    %mi = tensor.extract %len2[%i] : tensor<6xi32>
    %m = arith.index_cast %mi : i32 to index
    %s2 = tensor.extract_slice %s[0][%m][1] : tensor<16xf32> to tensor<?xf32>
    %li = tensor.extract %len[%i] : tensor<6xi32>
    %l = arith.index_cast %li : i32 to index
    %sub = tensor.extract_slice %s2[0][%l][1] : tensor<?xf32> to tensor<?xf32>
    %em = tensor.empty(%l) : tensor<?xf32>
    %t = linalg.add ins(%sub, %sub : tensor<?xf32>, tensor<?xf32>) outs(%em : tensor<?xf32>) -> tensor<?xf32>
    %rev = tensor.generate %l {
    ^bb0(%j: index):
      %j1 = arith.addi %j, %c1 : index
      %jj = arith.subi %l, %j1 : index
      %vv = tensor.extract %t[%jj] : tensor<?xf32>
      tensor.yield %vv : f32
    } : tensor<?xf32>
    %p2 = tensor.insert_slice %rev into %s2[0][%l][1] : tensor<?xf32> into tensor<?xf32>
    %p = tensor.insert_slice %p2 into %s[0][%m][1] : tensor<?xf32> into tensor<16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, 16][1, 1] : tensor<16xf32> into tensor<6x16xf32>
    }
  }
  return %r : tensor<6x16xf32>
}


// Steps as above of rows whose length the call tells, by a while that has a copy.
func.func @smoothed_any(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %half = arith.constant 0.5 : f32
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %w) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, %w][1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %last = arith.subi %w, %c1 : index
    %p = scf.for %k = %c0 to %c6 step %c1 iter_args(%a = %s) -> tensor<?xf32> {
      %q:2 = scf.while (%b = %a, %j = %c1) : (tensor<?xf32>, index) -> (tensor<?xf32>, index) {
        %more = arith.cmpi slt, %j, %last : index
        scf.condition(%more) %b, %j : tensor<?xf32>, index
      } do {
      ^bb0(%b: tensor<?xf32>, %j: index):
        %jl = arith.subi %j, %c1 : index
        %jr = arith.addi %j, %c1 : index
        %l = tensor.extract %a[%jl] : tensor<?xf32>
        %rr = tensor.extract %a[%jr] : tensor<?xf32>
        %sum = arith.addf %l, %rr : f32
        %h = arith.mulf %sum, %half : f32
        %b2 = tensor.insert %h into %b[%j] : tensor<?xf32>
        scf.yield %b2, %jr : tensor<?xf32>, index
      }
      scf.yield %q#0 : tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, %w][1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}
