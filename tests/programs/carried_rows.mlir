// Rows of a length that only the call knows, which loops inside of threads hand on.

func.func @branched(%x: tensor<?x?xf32>, %n: index) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %lim = arith.constant 9.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %w) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%m) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %row = tensor.extract_slice %x[%i, 0][1, %w][1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %res = scf.for %k = %c0 to %n step %c1 iter_args(%a = %row) -> tensor<?xf32> {
      %v0 = tensor.extract %a[%c0] : tensor<?xf32>
      %c0c = arith.cmpf olt, %v0, %lim : f32
      %s = arith.addf %a, %a : tensor<?xf32>
      %t = arith.mulf %a, %a : tensor<?xf32>
      %q = scf.if %c0c -> tensor<?xf32> {
        scf.yield %s : tensor<?xf32>
      } else {
        scf.yield %row : tensor<?xf32>
      }
      scf.yield %q : tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %res into %o[%i, 0][1, %w][1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

func.func @begun_again(%x: tensor<?x?xf32>, %n: index) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %lim = arith.constant 9.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %w) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%m) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %row = tensor.extract_slice %x[%i, 0][1, %w][1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %res = scf.for %k = %c0 to %n step %c1 iter_args(%a = %row) -> tensor<?xf32> {
      %q = scf.for %l = %c0 to %c2 step %c1 iter_args(%b = %a) -> tensor<?xf32> {
        %v0 = tensor.extract %b[%c0] : tensor<?xf32>
        %c0c = arith.cmpf olt, %v0, %lim : f32
        %q = scf.if %c0c -> tensor<?xf32> {
          %s = arith.addf %b, %row : tensor<?xf32>
          scf.yield %s : tensor<?xf32>
        } else {
          scf.yield %a : tensor<?xf32>
        }
        scf.yield %q : tensor<?xf32>
      }
      scf.yield %q : tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %res into %o[%i, 0][1, %w][1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

func.func @in_turn(%x: tensor<?x?xf32>, %n: index) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %w) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%m) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %row = tensor.extract_slice %x[%i, 0][1, %w][1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %p, %res = scf.for %k = %c0 to %n step %c1 iter_args(%a = %row, %b = %row) -> (tensor<?xf32>, tensor<?xf32>) {
      %s = arith.addf %a, %b : tensor<?xf32>
      scf.yield %b, %s : tensor<?xf32>, tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %res into %o[%i, 0][1, %w][1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

func.func @swapped_below(%x: tensor<?x?xf32>, %n: index) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %lim = arith.constant 9.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %w) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%m) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %row = tensor.extract_slice %x[%i, 0][1, %w][1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %r2 = arith.mulf %row, %row : tensor<?xf32>
    %p, %res = scf.for %k = %c0 to %n step %c1 iter_args(%a = %row, %b = %r2) -> (tensor<?xf32>, tensor<?xf32>) {
      %v0 = tensor.extract %a[%c0] : tensor<?xf32>
      %c0c = arith.cmpf olt, %v0, %lim : f32
      %q:2 = scf.if %c0c -> (tensor<?xf32>,tensor<?xf32>) {
        scf.yield %b, %a : tensor<?xf32>, tensor<?xf32>
      } else {
        %s = arith.addf %a, %b : tensor<?xf32>
        scf.yield %a, %s : tensor<?xf32>, tensor<?xf32>
      }
      scf.yield %q#0, %q#1 : tensor<?xf32>, tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %res into %o[%i, 0][1, %w][1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

func.func @doubled(%x: tensor<?x?xf32>, %n: index) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %lim = arith.constant 9.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %w) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%m) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %row = tensor.extract_slice %x[%i, 0][1, %w][1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %res = scf.while (%a = %row) : (tensor<?xf32>) -> tensor<?xf32> {
      %s = arith.addf %a, %a : tensor<?xf32>
      %v0 = tensor.extract %s[%c0] : tensor<?xf32>
      %c0c = arith.cmpf olt, %v0, %lim : f32
      scf.condition(%c0c) %s : tensor<?xf32>
    } do {
    ^bb0(%a: tensor<?xf32>):
      scf.yield %a : tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %res into %o[%i, 0][1, %w][1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

func.func @grown(%x: tensor<?x?xf32>, %n: index) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %lim = arith.constant 9.0 : f32
  %four = arith.constant 4.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %w) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%m) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %row = tensor.extract_slice %x[%i, 0][1, %w][1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %res = scf.while (%a = %row) : (tensor<?xf32>) -> tensor<?xf32> {
      %v1 = tensor.extract %a[%c0] : tensor<?xf32>
      %c1c = arith.cmpf olt, %v1, %four : f32
      %s = scf.if %c1c -> tensor<?xf32> {
        %s1 = arith.addf %a, %a : tensor<?xf32>
        scf.yield %s1 : tensor<?xf32>
      } else {
        %t1 = arith.mulf %a, %a : tensor<?xf32>
        scf.yield %t1 : tensor<?xf32>
      }
      %v0 = tensor.extract %s[%c0] : tensor<?xf32>
      %c0c = arith.cmpf olt, %v0, %lim : f32
      scf.condition(%c0c) %s : tensor<?xf32>
    } do {
    ^bb0(%a: tensor<?xf32>):
      scf.yield %a : tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %res into %o[%i, 0][1, %w][1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

func.func @crossed(%x: tensor<?x?xf32>, %n: index) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %lim = arith.constant 9.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %w) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%m) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %row = tensor.extract_slice %x[%i, 0][1, %w][1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %p, %res = scf.while (%a = %row, %b = %row) : (tensor<?xf32>, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
      %v0 = tensor.extract %b[%c0] : tensor<?xf32>
      %c0c = arith.cmpf olt, %v0, %lim : f32
      scf.condition(%c0c) %b, %a : tensor<?xf32>, tensor<?xf32>
    } do {
    ^bb0(%a: tensor<?xf32>, %b: tensor<?xf32>):
      %s = arith.addf %a, %b : tensor<?xf32>
      scf.yield %a, %s : tensor<?xf32>, tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %res into %o[%i, 0][1, %w][1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

func.func @inner(%x: tensor<?x?xf32>, %n: index) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %lim = arith.constant 9.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %w) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%m) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %row = tensor.extract_slice %x[%i, 0][1, %w][1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %res = scf.for %k = %c0 to %n step %c1 iter_args(%a = %row) -> tensor<?xf32> {
      %q = scf.while (%b = %a) : (tensor<?xf32>) -> tensor<?xf32> {
        %v0 = tensor.extract %b[%c0] : tensor<?xf32>
        %c0c = arith.cmpf olt, %v0, %lim : f32
        scf.condition(%c0c) %b : tensor<?xf32>
      } do {
      ^bb0(%b: tensor<?xf32>):
        %s = arith.addf %b, %b : tensor<?xf32>
        scf.yield %s : tensor<?xf32>
      }
      %h = arith.subf %q, %row : tensor<?xf32>
      scf.yield %h : tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %res into %o[%i, 0][1, %w][1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

func.func @given(%x: tensor<?x?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %lim = arith.constant 2.0 : f32
  %e = tensor.empty(%m, %w) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%m) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %row = tensor.extract_slice %x[%i, 0][1, %w][1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %res = scf.for %k = %c0 to %n step %c1 iter_args(%a = %row) -> tensor<?xf32> {
      %v = tensor.extract %a[%c0] : tensor<?xf32>
      %c = arith.cmpf olt, %v, %lim : f32
      %q = scf.if %c -> tensor<?xf32> {
        %s = arith.addf %y, %a : tensor<?xf32>
        scf.yield %s : tensor<?xf32>
      } else {
        scf.yield %y : tensor<?xf32>
      }
      scf.yield %q : tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %res into %o[%i, 0][1, %w][1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

func.func @windows(%x: tensor<?x?xi32>, %p: index, %q: index, %n: index) -> tensor<?xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xi32>
  %e = tensor.empty(%m) : tensor<?xi32>
  %z = arith.constant 0 : i32
  %r = scf.forall (%i) in (%m) shared_outs(%o = %e) -> tensor<?xi32> {
    %a0 = tensor.extract_slice %x[%i, 0][1, %p][1, 1] : tensor<?x?xi32> to tensor<?xi32>
    %b0 = tensor.extract_slice %x[%i, %p][1, %q][1, 1] : tensor<?x?xi32> to tensor<?xi32>
    %res:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %a0, %b = %b0) -> (tensor<?xi32>, tensor<?xi32>) {
      %s = arith.addi %a, %a : tensor<?xi32>
      scf.yield %b, %s : tensor<?xi32>, tensor<?xi32>
    }
    %f = tensor.empty() : tensor<i32>
    %g = linalg.fill ins(%z : i32) outs(%f : tensor<i32>) -> tensor<i32>
    %h = linalg.reduce ins(%res#0 : tensor<?xi32>) outs(%g : tensor<i32>) dimensions = [0] (%u: i32, %v: i32) {
      %t = arith.addi %u, %v : i32
      linalg.yield %t : i32
    }
    %d = tensor.dim %res#1, %c0 : tensor<?xi32>
    %d1 = arith.index_cast %d : index to i32
    %d2 = tensor.extract %h[] : tensor<i32>
    %k100 = arith.constant 100000 : i32
    %d3 = arith.muli %d1, %k100 : i32
    %d4 = arith.addi %d3, %d2 : i32
    %d5 = tensor.from_elements %d4 : tensor<1xi32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %d5 into %o[%i][1][1] : tensor<1xi32> into tensor<?xi32>
    }
  }
  return %r : tensor<?xi32>
}

func.func @blocks(%x: tensor<?x?x?xi8>, %y: tensor<?x?xi8>, %n: index) -> tensor<?x?x?xi8> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %m = tensor.dim %x, %c0 : tensor<?x?x?xi8>
  %h = tensor.dim %x, %c1 : tensor<?x?x?xi8>
  %w = tensor.dim %x, %c2 : tensor<?x?x?xi8>
  %e = tensor.empty(%m, %h, %w) : tensor<?x?x?xi8>
  %r = scf.forall (%i) in (%m) shared_outs(%o = %e) -> tensor<?x?x?xi8> {
    %row = tensor.extract_slice %x[%i, 0, 0][1, %h, %w][1, 1, 1] : tensor<?x?x?xi8> to tensor<?x?xi8>
    %last, %res, %res2 = scf.while (%k = %c0, %a = %row, %b = %y) : (index, tensor<?x?xi8>, tensor<?x?xi8>) -> (index, tensor<?x?xi8>, tensor<?x?xi8>) {
      %c = arith.cmpi ult, %k, %n : index
      scf.condition(%c) %k, %a, %b : index, tensor<?x?xi8>, tensor<?x?xi8>
    } do {
    ^bb0(%k: index, %a: tensor<?x?xi8>, %b: tensor<?x?xi8>):
      %s = arith.addi %a, %b : tensor<?x?xi8>
      %kk = arith.addi %k, %c1 : index
      scf.yield %kk, %b, %s : index, tensor<?x?xi8>, tensor<?x?xi8>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %res into %o[%i, 0, 0][1, %h, %w][1, 1, 1] : tensor<?x?xi8> into tensor<?x?x?xi8>
    }
  }
  return %r : tensor<?x?x?xi8>
}

func.func @multiples(%x: tensor<?x?xf32>, %n: index) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%m) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %last, %res = scf.while (%k = %c0) : (index) -> (index, tensor<?xf32>) {
      %v = tensor.extract %x[%i, %k] : tensor<?x?xf32>
      %t = tensor.generate %n {
      ^bb0(%j: index):
        %jj = arith.index_cast %j : index to i32
        %jf = arith.sitofp %jj : i32 to f32
        %u = arith.mulf %jf, %v : f32
        tensor.yield %u : f32
      } : tensor<?xf32>
      %kk = arith.addi %k, %c1 : index
      %c = arith.cmpi ult, %kk, %w : index
      scf.condition(%c) %kk, %t : index, tensor<?xf32>
    } do {
    ^bb0(%k: index, %a: tensor<?xf32>):
      scf.yield %k : index
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %res into %o[%i, 0][1, %n][1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

func.func @halves(%x: tensor<?x?xf32>, %p: index, %n: index) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %w) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%m) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %row = tensor.extract_slice %x[%i, 0][1, %w][1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %half = tensor.extract_slice %x[%i, 0][1, %p][1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %res = scf.for %k = %c0 to %n step %c1 iter_args(%a = %half) -> tensor<?xf32> {
      %odd = arith.remui %k, %c3 : index
      %c = arith.cmpi eq, %odd, %c1 : index
      %s = arith.addf %a, %a : tensor<?xf32>
      %q = arith.select %c, %row, %s : tensor<?xf32>
      scf.yield %q : tensor<?xf32>
    }
    %d = tensor.dim %res, %c0 : tensor<?xf32>
    %fin = tensor.insert_slice %res into %row[0][%d][1] : tensor<?xf32> into tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %fin into %o[%i, 0][1, %w][1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

// Rows and columns change places, and the other tensor has had as many elements as both.
func.func @turned(%x: tensor<?x?x?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?x?xf32>
  %p = tensor.dim %x, %c1 : tensor<?x?x?xf32>
  %q = tensor.dim %x, %c2 : tensor<?x?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %r = scf.forall (%i) in (%m) shared_outs(%o = %e) -> tensor<?xf32> {
    %A = tensor.extract_slice %x[%i, 0, 0][1, %p, %q][1, 1, 1] : tensor<?x?x?xf32> to tensor<?x?xf32>
    %B = tensor.extract_slice %x[%i, 0, 0][1, %p, 1][1, 1, 1] : tensor<?x?x?xf32> to tensor<?xf32>
    %fi = arith.index_cast %i : index to i64
    %ff = arith.sitofp %fi : i64 to f32
    %ra, %rb = scf.for %k = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (tensor<?x?xf32>, tensor<?xf32>) {
      %d0 = tensor.dim %a, %c0 : tensor<?x?xf32>
      %d1 = tensor.dim %a, %c1 : tensor<?x?xf32>
      %ea = tensor.empty(%d1, %d0) : tensor<?x?xf32>
      %na = linalg.transpose ins(%a : tensor<?x?xf32>) outs(%ea : tensor<?x?xf32>) permutation = [1, 0]
      %eb = tensor.empty(%d0) : tensor<?xf32>
      %nb = linalg.fill ins(%ff : f32) outs(%eb : tensor<?xf32>) -> tensor<?xf32>
      scf.yield %na, %nb : tensor<?x?xf32>, tensor<?xf32>
    }
    %ez = tensor.empty() : tensor<f32>
    %z = linalg.fill ins(%zero : f32) outs(%ez : tensor<f32>) -> tensor<f32>
    %s = linalg.reduce ins(%rb : tensor<?xf32>) outs(%z : tensor<f32>) dimensions = [0] (%in: f32, %out: f32) {
      %t = arith.addf %in, %out : f32
      linalg.yield %t : f32
    }
    %sv = tensor.extract %s[] : tensor<f32>
    %av = tensor.extract %ra[%c0, %c0] : tensor<?x?xf32>
    %sum = arith.addf %sv, %av : f32
    %t1 = tensor.from_elements %sum : tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t1 into %o[%i] [1] [1] : tensor<1xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}
