// Graphs of small operations on tensors, as StableHLO's own passes lower them: equal empty tensors are one, results are
// used several times, and integers without a sign are cast to those that are unsigned.
#same = affine_map<(i, j) -> (i, j)>
#none = affine_map<(i, j) -> ()>
#row = affine_map<(i) -> (i)>

// Mandelbrot's set: both squares, and what is compared, are used by two and by three of the values handed on.
func.func @escapes(%re: tensor<6x8xf32>, %im: tensor<6x8xf32>, %steps: i32) -> tensor<6x8xi32> {
  %from = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %four = arith.constant dense<4.0> : tensor<f32>
  %zero = arith.constant 0.0 : f32
  %floats = tensor.empty() : tensor<6x8xf32>
  %ints = tensor.empty() : tensor<6x8xi32>
  %bits = tensor.empty() : tensor<6x8xi1>
  %z = linalg.fill ins(%zero : f32) outs(%floats : tensor<6x8xf32>) -> tensor<6x8xf32>
  %n = linalg.fill ins(%from : i32) outs(%ints : tensor<6x8xi32>) -> tensor<6x8xi32>
  %r:3 = scf.for %i = %from to %steps step %step iter_args(%x = %z, %y = %z, %count = %n)
      -> (tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xi32>) : i32 {
    %xx = linalg.mul ins(%x, %x : tensor<6x8xf32>, tensor<6x8xf32>) outs(%floats : tensor<6x8xf32>) -> tensor<6x8xf32>
    %yy = linalg.mul ins(%y, %y : tensor<6x8xf32>, tensor<6x8xf32>) outs(%floats : tensor<6x8xf32>) -> tensor<6x8xf32>
    %far = linalg.add ins(%xx, %yy : tensor<6x8xf32>, tensor<6x8xf32>) outs(%floats : tensor<6x8xf32>) -> tensor<6x8xf32>
    %limit = linalg.generic {indexing_maps = [#none, #same], iterator_types = ["parallel", "parallel"]}
        ins(%four : tensor<f32>) outs(%floats : tensor<6x8xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<6x8xf32>
    %inside = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
        ins(%far, %limit : tensor<6x8xf32>, tensor<6x8xf32>) outs(%bits : tensor<6x8xi1>) {
    ^bb0(%a: f32, %b: f32, %o: i1):
      %c = arith.cmpf olt, %a, %b : f32
      linalg.yield %c : i1
    } -> tensor<6x8xi1>
    %d = linalg.sub ins(%xx, %yy : tensor<6x8xf32>, tensor<6x8xf32>) outs(%floats : tensor<6x8xf32>) -> tensor<6x8xf32>
    %x1 = linalg.add ins(%d, %re : tensor<6x8xf32>, tensor<6x8xf32>) outs(%floats : tensor<6x8xf32>) -> tensor<6x8xf32>
    %x2 = linalg.select ins(%inside, %x1, %x : tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>)
        outs(%floats : tensor<6x8xf32>) -> tensor<6x8xf32>
    %xy = linalg.mul ins(%x, %y : tensor<6x8xf32>, tensor<6x8xf32>) outs(%floats : tensor<6x8xf32>) -> tensor<6x8xf32>
    %twice = linalg.add ins(%xy, %xy : tensor<6x8xf32>, tensor<6x8xf32>) outs(%floats : tensor<6x8xf32>)
        -> tensor<6x8xf32>
    %y1 = linalg.add ins(%twice, %im : tensor<6x8xf32>, tensor<6x8xf32>) outs(%floats : tensor<6x8xf32>)
        -> tensor<6x8xf32>
    %y2 = linalg.select ins(%inside, %y1, %y : tensor<6x8xi1>, tensor<6x8xf32>, tensor<6x8xf32>)
        outs(%floats : tensor<6x8xf32>) -> tensor<6x8xf32>
    %more = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
        ins(%count, %inside : tensor<6x8xi32>, tensor<6x8xi1>) outs(%ints : tensor<6x8xi32>) {
    ^bb0(%a: i32, %b: i1, %o: i32):
      %c = arith.extui %b : i1 to i32
      %e = arith.addi %a, %c : i32
      linalg.yield %e : i32
    } -> tensor<6x8xi32>
    scf.yield %x2, %y2, %more : tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xi32>
  }
  return %r#2 : tensor<6x8xi32>
}

// What takes long is computed once, however many use it.
func.func @waves(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %w = math.sin %x : tensor<?xf32>
  %a = arith.addf %w, %x : tensor<?xf32>
  %b = arith.mulf %w, %x : tensor<?xf32>
  return %a, %b : tensor<?xf32>, tensor<?xf32>
}

func.func private @half(%x: tensor<?xui8>) -> tensor<?xui8> {
  %c0 = arith.constant 0 : index
  %size = tensor.dim %x, %c0 : tensor<?xui8>
  %place = tensor.empty(%size) : tensor<?xi8>
  %from = builtin.unrealized_conversion_cast %x : tensor<?xui8> to tensor<?xi8>
  %r = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]}
      ins(%from : tensor<?xi8>) outs(%place : tensor<?xi8>) {
  ^bb0(%a: i8, %o: i8):
    %one = arith.constant 1 : i8
    %b = arith.shrui %a, %one : i8
    linalg.yield %b : i8
  } -> tensor<?xi8>
  %to = builtin.unrealized_conversion_cast %r : tensor<?xi8> to tensor<?xui8>
  return %to : tensor<?xui8>
}
func.func @halved(%x: tensor<?xui8>, %times: index) -> tensor<?xui8> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %times step %c1 iter_args(%y = %x) -> tensor<?xui8> {
    %z = func.call @half(%y) : (tensor<?xui8>) -> tensor<?xui8>
    scf.yield %z : tensor<?xui8>
  }
  return %r : tensor<?xui8>
}
func.func @table() -> (tensor<3xui16>, tensor<ui32>) {
  %c = arith.constant dense<[1, -2, 300]> : tensor<3xi16>
  %r = tensor.bitcast %c : tensor<3xi16> to tensor<3xui16>
  %one = arith.constant dense<-1> : tensor<i32>
  %s = builtin.unrealized_conversion_cast %one : tensor<i32> to tensor<ui32>
  return %r, %s : tensor<3xui16>, tensor<ui32>
}
