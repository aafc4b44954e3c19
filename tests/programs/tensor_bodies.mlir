// Functions on tensors with bodies of their own: they call each other, branch between blocks, and their parallel
// loops keep tensors for themselves.
#row = affine_map<(i) -> (i)>
#all = affine_map<(i) -> ()>
#rest = affine_map<(i)[n] -> (8, n - i)>
func.func private @twice(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = arith.addf %x, %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @chained(%x: tensor<?xf32>) -> tensor<?xf32> {
  %a = call @twice(%x) : (tensor<?xf32>) -> tensor<?xf32>
  %b = call @twice(%a) : (tensor<?xf32>) -> tensor<?xf32>
  return %b : tensor<?xf32>
}
func.func @from_memory(%x: memref<?xf32>, %out: memref<?xf32>) {
  %t = bufferization.to_tensor %x restrict : memref<?xf32> to tensor<?xf32>
  %a = call @chained(%t) : (tensor<?xf32>) -> tensor<?xf32>
  %b = call @twice(%a) : (tensor<?xf32>) -> tensor<?xf32>
  bufferization.materialize_in_destination %b in restrict writable %out : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}
func.func @branch(%x: tensor<?xf32>, %y: tensor<?xf32>, %which: i1) -> tensor<?xf32> {
  cf.cond_br %which, ^first, ^second
^first:
  %e = math.exp %x : tensor<?xf32>
  cf.br ^end(%e : tensor<?xf32>)
^second:
  cf.br ^end(%y : tensor<?xf32>)
^end(%r: tensor<?xf32>):
  return %r : tensor<?xf32>
}
func.func @until(%x: tensor<?xf32>, %n: i32, %last: i32) -> tensor<?xf32> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  cf.br ^head(%x, %zero : tensor<?xf32>, i32)
^head(%a: tensor<?xf32>, %i: i32):
  %more = arith.cmpi slt, %i, %n : i32
  cf.cond_br %more, ^body, ^end
^body:
  %b = arith.addf %a, %x : tensor<?xf32>
  %next = arith.addi %i, %one : i32
  %stop = arith.cmpi eq, %next, %last : i32
  cf.cond_br %stop, ^early(%b : tensor<?xf32>), ^head(%b, %next : tensor<?xf32>, i32)
^early(%c: tensor<?xf32>):
  %d = arith.negf %c : tensor<?xf32>
  return %d : tensor<?xf32>
^end:
  return %a : tensor<?xf32>
}
func.func @shares(%x: tensor<6x32xf32>) -> tensor<6x32xf32> {
  %none = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<6x32xf32>
  %r = scf.forall (%i) in (6) shared_outs(%o = %e) -> tensor<6x32xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, 32][1, 1] : tensor<6x32xf32> to tensor<32xf32>
    %d = tensor.extract_slice %o[%i, 0][1, 32][1, 1] : tensor<6x32xf32> to tensor<32xf32>
    %one = tensor.empty() : tensor<f32>
    %start = linalg.fill ins(%low : f32) outs(%one : tensor<f32>) -> tensor<f32>
    %max = linalg.reduce { arith.maximumf } ins(%s : tensor<32xf32>) outs(%start : tensor<f32>) dimensions = [0]
    %exp = linalg.generic {indexing_maps = [#row, #all, #row], iterator_types = ["parallel"]}
        ins(%s, %max : tensor<32xf32>, tensor<f32>) outs(%d : tensor<32xf32>) {
    ^bb0(%a: f32, %b: f32, %to: f32):
      %p = arith.subf %a, %b : f32
      %q = math.exp %p : f32
      linalg.yield %q : f32
    } -> tensor<32xf32>
    %zero = linalg.fill ins(%none : f32) outs(%one : tensor<f32>) -> tensor<f32>
    %sum = linalg.reduce { arith.addf } ins(%exp : tensor<32xf32>) outs(%zero : tensor<f32>) dimensions = [0]
    %all = tensor.extract %sum[] : tensor<f32>
    %share = linalg.map ins(%exp : tensor<32xf32>) outs(%d : tensor<32xf32>) (%a: f32, %to: f32) {
      %q = arith.divf %a, %all : f32
      linalg.yield %q : f32
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %share into %o[%i, 0][1, 32][1, 1] : tensor<32xf32> into tensor<6x32xf32>
    }
  }
  return %r : tensor<6x32xf32>
}
func.func @numbers(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xi32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %f = tensor.empty(%n) : tensor<?xi32>
  %r:2 = scf.forall (%i) in (%n) shared_outs(%a = %e, %b = %f) -> (tensor<?xf32>, tensor<?xi32>) {
    %v = tensor.extract %x[%i] : tensor<?xf32>
    %w = arith.mulf %v, %v : f32
    %k = arith.index_cast %i : index to i32
    %square = tensor.from_elements %w : tensor<1xf32>
    %place = tensor.from_elements %k : tensor<1xi32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %square into %a[%i][1][1] : tensor<1xf32> into tensor<?xf32>
      tensor.parallel_insert_slice %place into %b[%i][1][1] : tensor<1xi32> into tensor<?xi32>
    }
  }
  return %r#0, %r#1 : tensor<?xf32>, tensor<?xi32>
}
func.func @tiles(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = scf.forall (%i) = (0) to (%n) step (8) shared_outs(%o = %e) -> tensor<?xf32> {
    %w = affine.min #rest(%i)[%n]
    %last = arith.subi %w, %c1 : index
    %s = tensor.extract_slice %x[%i][%w][1] : tensor<?xf32> to tensor<?xf32>
    %d = tensor.extract_slice %o[%i][%w][1] : tensor<?xf32> to tensor<?xf32>
    %own = tensor.empty(%w) : tensor<?xf32>
    %exp = linalg.exp ins(%s : tensor<?xf32>) outs(%own : tensor<?xf32>) -> tensor<?xf32>
    %turned = linalg.generic {indexing_maps = [#row], iterator_types = ["parallel"]} outs(%d : tensor<?xf32>) {
    ^bb0(%to: f32):
      %j = linalg.index 0 : index
      %k = arith.subi %last, %j : index
      %v = tensor.extract %exp[%k] : tensor<?xf32>
      linalg.yield %v : f32
    } -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %turned into %o[%i][%w][1] : tensor<?xf32> into tensor<?xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<?xf32>
}
func.func @bits(%x: tensor<?xf32>) -> tensor<?xi32> {
  %r = tensor.bitcast %x : tensor<?xf32> to tensor<?xi32>
  return %r : tensor<?xi32>
}
// One iteration is no kernel: what it makes is the host's to allocate and to free.
func.func @single(%x: tensor<1x4xf32>, %all: i1) -> tensor<1x4xf32> {
  %seven = arith.constant 7.0 : f32
  %r = scf.forall (%i) in (1) shared_outs(%o = %x) -> tensor<1x4xf32> {
    %row = tensor.extract_slice %o[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> to tensor<4xf32>
    %chosen = scf.if %all -> tensor<4xf32> {
      %e = tensor.empty() : tensor<4xf32>
      %f = linalg.fill ins(%seven : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      scf.yield %f : tensor<4xf32>
    } else {
      scf.yield %row : tensor<4xf32>
    }
    %p = linalg.mul ins(%chosen, %chosen : tensor<4xf32>, tensor<4xf32>) outs(%row : tensor<4xf32>) -> tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<1x4xf32>
    }
  }
  return %r : tensor<1x4xf32>
}

// Rows as long as the run says are worked on where they are.
func.func @grown(%x: tensor<?x?xf32>, %m: index, %n: index) -> tensor<?x?xf32> {
  %r = scf.forall (%i) in (%m) shared_outs(%o = %x) -> tensor<?x?xf32> {
    %a = tensor.extract_slice %x[%i, 0] [1, %n] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %b = tensor.extract_slice %o[%i, 0] [1, %n] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %p = linalg.mul ins(%a, %b : tensor<?xf32>, tensor<?xf32>) outs(%b : tensor<?xf32>) -> tensor<?xf32>
    %s = linalg.add ins(%p, %b : tensor<?xf32>, tensor<?xf32>) outs(%b : tensor<?xf32>) -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[%i, 0] [1, %n] [1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

// What the values before it are left out of by each element.
func.func @zeroed(%x: tensor<?xi32>) -> tensor<i32> {
  %seven = arith.constant 7 : i32
  %e = tensor.empty() : tensor<i32>
  %f = linalg.fill ins(%seven : i32) outs(%e : tensor<i32>) -> tensor<i32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%x : tensor<?xi32>) outs(%f : tensor<i32>) {
  ^bb0(%y: i32, %before: i32):
    %z = arith.subi %y, %y : i32
    %m = arith.muli %before, %z : i32
    linalg.yield %m : i32
  } -> tensor<i32>
  return %r : tensor<i32>
}
func.func @zeroed_argument(%x: tensor<?xi32>, %begin: tensor<i32>) -> tensor<i32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%x : tensor<?xi32>) outs(%begin : tensor<i32>) {
  ^bb0(%y: i32, %before: i32):
    %z = arith.subi %y, %y : i32
    %m = arith.muli %before, %z : i32
    linalg.yield %m : i32
  } -> tensor<i32>
  return %r : tensor<i32>
}
