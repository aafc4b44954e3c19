// One tensor as two results: a store into one of them leaves the other as it is.
func.func @yielded(%x: tensor<4xi32>, %n: index) -> (tensor<4xi32>, tensor<4xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %seven = arith.constant 7 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %x) -> (tensor<4xi32>, tensor<4xi32>) {
    %sum = arith.addi %a, %x : tensor<4xi32>
    scf.yield %sum, %sum : tensor<4xi32>, tensor<4xi32>
  }
  %changed = tensor.insert %seven into %r#1[%c0] : tensor<4xi32>
  return %r#0, %changed : tensor<4xi32>, tensor<4xi32>
}

func.func private @same(%x: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>) {
  %y = arith.addi %x, %x : tensor<4xi32>
  return %y, %y : tensor<4xi32>, tensor<4xi32>
}
func.func @returned(%x: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>) {
  %c0 = arith.constant 0 : index
  %seven = arith.constant 7 : i32
  %r:2 = call @same(%x) : (tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>)
  %changed = tensor.insert %seven into %r#1[%c0] : tensor<4xi32>
  return %r#0, %changed : tensor<4xi32>, tensor<4xi32>
}

// A part of what the loop yields, too.
func.func @part(%x: tensor<4xi32>, %n: index) -> (tensor<4xi32>, tensor<2xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %seven = arith.constant 7 : i32
  %first = tensor.extract_slice %x[0] [2] [1] : tensor<4xi32> to tensor<2xi32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %first) -> (tensor<4xi32>, tensor<2xi32>) {
    %sum = arith.addi %a, %x : tensor<4xi32>
    %half = tensor.extract_slice %sum[0] [2] [1] : tensor<4xi32> to tensor<2xi32>
    scf.yield %sum, %half : tensor<4xi32>, tensor<2xi32>
  }
  %changed = tensor.insert %seven into %r#0[%c0] : tensor<4xi32>
  return %changed, %r#1 : tensor<4xi32>, tensor<2xi32>
}

// What is chosen is a tensor that is used afterwards, or a new one.
func.func @chosen(%x: tensor<4xi32>, %which: index) -> (tensor<4xi32>, tensor<4xi32>) {
  %c0 = arith.constant 0 : index
  %seven = arith.constant 7 : i32
  %y = arith.addi %x, %x : tensor<4xi32>
  %r = scf.index_switch %which -> tensor<4xi32>
  case 1 {
    scf.yield %y : tensor<4xi32>
  }
  case 5 {
    %square = arith.muli %x, %x : tensor<4xi32>
    scf.yield %square : tensor<4xi32>
  }
  default {
    %none = arith.subi %x, %x : tensor<4xi32>
    scf.yield %none : tensor<4xi32>
  }
  %changed = tensor.insert %seven into %r[%c0] : tensor<4xi32>
  return %y, %changed : tensor<4xi32>, tensor<4xi32>
}

// Where the tensor goes is known behind the branch that makes it.
func.func @placed(%x: tensor<4xi32>, %y: tensor<2xi32>, %twice: i1) -> tensor<4xi32> {
  %c0 = arith.constant 0 : index
  %to = arith.addi %x, %x : tensor<4xi32>
  %made:2 = scf.if %twice -> (tensor<2xi32>, index) {
    %sum = arith.addi %y, %y : tensor<2xi32>
    %first = tensor.extract %x[%c0] : tensor<4xi32>
    %place = arith.index_cast %first : i32 to index
    scf.yield %sum, %place : tensor<2xi32>, index
  } else {
    %square = arith.muli %y, %y : tensor<2xi32>
    scf.yield %square, %c0 : tensor<2xi32>, index
  }
  %r = tensor.insert_slice %made#0 into %to[%made#1] [2] [1] : tensor<2xi32> into tensor<4xi32>
  return %r : tensor<4xi32>
}

// The condition's region changes what the body hands on, which is a result, too, or both of its tensors.
func.func @again(%x: tensor<4xi32>, %n: index) -> (tensor<4xi32>, tensor<4xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %seven = arith.constant 7 : i32
  %y = arith.addi %x, %x : tensor<4xi32>
  %r:2 = scf.while (%a = %x, %k = %c0) : (tensor<4xi32>, index) -> (tensor<4xi32>, index) {
    %changed = tensor.insert %seven into %a[%c0] : tensor<4xi32>
    %more = arith.cmpi slt, %k, %n : index
    scf.condition(%more) %changed, %k : tensor<4xi32>, index
  } do {
  ^bb0(%a: tensor<4xi32>, %k: index):
    %next = arith.addi %k, %c1 : index
    scf.yield %y, %next : tensor<4xi32>, index
  }
  return %y, %r#0 : tensor<4xi32>, tensor<4xi32>
}
func.func @both(%x: tensor<4xi32>, %n: index) -> (tensor<4xi32>, tensor<4xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %seven = arith.constant 7 : i32
  %r:3 = scf.while (%a = %x, %b = %x, %k = %c0)
      : (tensor<4xi32>, tensor<4xi32>, index) -> (tensor<4xi32>, tensor<4xi32>, index) {
    %changed = tensor.insert %seven into %b[%c0] : tensor<4xi32>
    %more = arith.cmpi slt, %k, %n : index
    scf.condition(%more) %a, %changed, %k : tensor<4xi32>, tensor<4xi32>, index
  } do {
  ^bb0(%a: tensor<4xi32>, %b: tensor<4xi32>, %k: index):
    %next = arith.addi %k, %c1 : index
    %sum = arith.addi %a, %a : tensor<4xi32>
    scf.yield %sum, %sum, %next : tensor<4xi32>, tensor<4xi32>, index
  }
  return %r#0, %r#1 : tensor<4xi32>, tensor<4xi32>
}

// A row is made where it is inserted: in a tensor that nobody uses any more.
func.func @inserted(%x: tensor<4x8xf32>, %v: f32) -> tensor<4x8xf32> {
  %to = arith.addf %x, %x : tensor<4x8xf32>
  %empty = tensor.empty() : tensor<8xf32>
  %row = linalg.fill ins(%v : f32) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  %r = tensor.insert_slice %row into %to[2, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
