// What steps of threads' loops ask of sizes is asserted in front of the loops.

// The same of each step.
func.func @rows(%a: tensor<?x?xf32>, %b: tensor<?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %a, %c0 : tensor<?x?xf32>
  %m = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %row = tensor.extract_slice %a[%i, 0] [1, %m] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %out = tensor.extract_slice %o[%i, 0] [1, %m] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %s = linalg.add ins(%row, %b : tensor<?xf32>, tensor<?xf32>) outs(%out : tensor<?xf32>) -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[%i, 0] [1, %m] [1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

// The last step goes farthest.
func.func @parts(%a: tensor<?xf32>, %k: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %size = arith.muli %k, %c4 : index
  %e = tensor.empty(%size) : tensor<?xf32>
  %r = scf.forall (%i) in (%k) shared_outs(%o = %e) -> tensor<?xf32> {
    %at = affine.apply affine_map<(d0) -> (d0 * 4)>(%i)
    %row = tensor.extract_slice %a[%at] [4] [1] : tensor<?xf32> to tensor<4xf32>
    %em = tensor.empty() : tensor<4xf32>
    %s = linalg.exp ins(%row : tensor<4xf32>) outs(%em : tensor<4xf32>) -> tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[%at] [4] [1] : tensor<4xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}

// Steps of four, the last of which may be too far.
func.func @insertions(%a: tensor<?xf32>, %e: tensor<?xf32>, %k: index) -> tensor<?xf32> {
  %r = scf.forall (%i) = (0) to (%k) step (4) shared_outs(%o = %e) -> tensor<?xf32> {
    %row = tensor.extract_slice %a[%i] [4] [1] : tensor<?xf32> to tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %row into %o[%i] [4] [1] : tensor<4xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}

// The first one does.
func.func @turned(%a: tensor<?xf32>, %e: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %e, %c0 : tensor<?xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?xf32> {
    %at = affine.apply affine_map<(d0)[s0] -> (s0 - d0 - 1)>(%i)[%n]
    %v = tensor.extract_slice %a[%at] [1] [1] : tensor<?xf32> to tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %v into %o[%i] [1] [1] : tensor<1xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}

// Loops in loops.
func.func @views(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c2) {
    scf.for %j = %c0 to %n step %c1 {
      %v = memref.subview %a[%i, %j] [1, 3] [1, 1] : memref<?x?xf32> to memref<3xf32, strided<[1], offset: ?>>
      %w = memref.subview %b[%i, %j] [1, 3] [1, 1] : memref<?x?xf32> to memref<3xf32, strided<[1], offset: ?>>
      linalg.exp ins(%v : memref<3xf32, strided<[1], offset: ?>>) outs(%w : memref<3xf32, strided<[1], offset: ?>>)
    }
  }
  return
}

// Rows that loops and branches hand on are as long as they were.
func.func @carried(%a: tensor<?x?xf32>, %b: tensor<?xf32>, %k: index, %p: i1) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %a, %c0 : tensor<?x?xf32>
  %m = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %row = tensor.extract_slice %a[%i, 0] [1, %m] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %l = scf.for %j = %c0 to %k step %c1 iter_args(%c = %row) -> (tensor<?xf32>) {
      %d = scf.for %j2 = %c0 to %j step %c1 iter_args(%c2 = %c) -> (tensor<?xf32>) {
        %s0 = linalg.exp ins(%c2 : tensor<?xf32>) outs(%c2 : tensor<?xf32>) -> tensor<?xf32>
        scf.yield %s0 : tensor<?xf32>
      }
      %q = scf.if %p -> tensor<?xf32> {
        %s1 = linalg.abs ins(%d : tensor<?xf32>) outs(%d : tensor<?xf32>) -> tensor<?xf32>
        scf.yield %s1 : tensor<?xf32>
      } else {
        scf.yield %c : tensor<?xf32>
      }
      scf.yield %q : tensor<?xf32>
    }
    %s = linalg.add ins(%l, %b : tensor<?xf32>, tensor<?xf32>) outs(%l : tensor<?xf32>) -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[%i, 0] [1, %m] [1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

// A division that only steps make.
func.func @divided(%a: tensor<?xf32>, %b: tensor<?xf32>, %k: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %x = linalg.exp ins(%a : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %x) -> tensor<?xf32> {
    %d = arith.divui %n, %k : index
    %v = tensor.extract_slice %b[%d] [1] [1] : tensor<?xf32> to tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %v into %o[%i] [1] [1] : tensor<1xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}

// Not each step comes there.
func.func @guarded(%a: tensor<?xf32>, %e: tensor<?xf32>, %k: index) -> tensor<?xf32> {
  %c3 = arith.constant 3 : index
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %r = scf.forall (%i) in (%k) shared_outs(%o = %e) -> tensor<?xf32> {
    %in = arith.cmpi ult, %i, %n : index
    %v = scf.if %in -> f32 {
      %row = tensor.extract_slice %a[%i] [1] [1] : tensor<?xf32> to tensor<1xf32>
      %x = tensor.extract %row[%c0] : tensor<1xf32>
      scf.yield %x : f32
    } else {
      %z = arith.constant 7.0 : f32
      scf.yield %z : f32
    }
    %t = tensor.from_elements %v : tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%i] [1] [1] : tensor<1xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}

// Of elements that are generated.
func.func @generated(%a: tensor<?x?xf32>, %n: index) -> tensor<?xf32> {
  %c1 = arith.constant 1 : index
  %g = tensor.generate %n {
  ^bb0(%i: index):
    %row = tensor.extract_slice %a[%i, 0] [1, 2] [1, 1] : tensor<?x?xf32> to tensor<2xf32>
    %e = tensor.extract %row[%c1] : tensor<2xf32>
    tensor.yield %e : f32
  } : tensor<?xf32>
  return %g : tensor<?xf32>
}

// Of four indices, all first steps and all last ones.
func.func @four(%x: memref<?x?x?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i, %j, %k, %l) = (%c0, %c0, %c0, %c0) to (%n, %n, %n, %n) step (%c1, %c1, %c1, %c1) {
    %ij = arith.addi %i, %j : index
    %kl = arith.addi %k, %l : index
    %at = arith.addi %ij, %kl : index
    %v = memref.subview %x[%i, %j, %k, %at] [1, 1, 1, 1] [1, 1, 1, 1] : memref<?x?x?x?xf32> to memref<f32, strided<[], offset: ?>>
    linalg.exp ins(%v : memref<f32, strided<[], offset: ?>>) outs(%v : memref<f32, strided<[], offset: ?>>)
  }
  return
}

// Tiles that are within their arrays, whatever their size is.
func.func @tiles(%a: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = scf.forall (%i) = (0) to (%n) step (32) shared_outs(%o = %e) -> tensor<?xf32> {
    %left = arith.subi %n, %i : index
    %c32 = arith.constant 32 : index
    %size = arith.minsi %left, %c32 : index
    %p = tensor.extract_slice %a[%i] [%size] [1] : tensor<?xf32> to tensor<?xf32>
    %q = tensor.extract_slice %o[%i] [%size] [1] : tensor<?xf32> to tensor<?xf32>
    %x = linalg.exp ins(%p : tensor<?xf32>) outs(%q : tensor<?xf32>) -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %o[%i] [%size] [1] : tensor<?xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}
func.func @affine_tiles(%a: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = scf.forall (%i) = (0) to (%n) step (32) shared_outs(%o = %e) -> tensor<?xf32> {
    %size = affine.min affine_map<(d0)[s0] -> (32, s0 - d0)>(%i)[%n]
    %p = tensor.extract_slice %a[%i] [%size] [1] : tensor<?xf32> to tensor<?xf32>
    %q = tensor.extract_slice %o[%i] [%size] [1] : tensor<?xf32> to tensor<?xf32>
    %x = linalg.exp ins(%p : tensor<?xf32>) outs(%q : tensor<?xf32>) -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %o[%i] [%size] [1] : tensor<?xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}

// Loops of no steps divide by no size of zero, and read none of no elements.
func.func @digits(%a: tensor<?x?xf32>, %n: index, %m: index) -> tensor<?xf32> {
  %nm = arith.muli %n, %m : index
  %e = tensor.empty(%nm) : tensor<?xf32>
  %r = scf.forall (%i) in (%nm) shared_outs(%o = %e) -> tensor<?xf32> {
    %at:2 = affine.delinearize_index %i into (%n, %m) : index, index
    %v = tensor.extract_slice %a[%at#0, %at#1] [1, 1] [1, 1] : tensor<?x?xf32> to tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %v into %o[%i] [1] [1] : tensor<1xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}

func.func @gathered(%a: tensor<?x?xf32>, %places: tensor<?xi64>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %places, %c0 : tensor<?xi64>
  %m = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %p = tensor.extract %places[%i] : tensor<?xi64>
    %at = arith.index_cast %p : i64 to index
    %v = tensor.extract_slice %a[%at, 0] [1, %m] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %v into %o[%i, 0] [1, %m] [1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}
