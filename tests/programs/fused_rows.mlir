// Operations one after another on the same rows: for golden/fused_rows.kernels.check.
#all = affine_map<(i, k) -> (i, k)>
#row = affine_map<(i, k) -> (i)>
#step = affine_map<(i, k) -> (k)>
#number = affine_map<(i) -> (i)>

// A softmax in parts, as compilers decompose it.
func.func @softmax(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %rows = tensor.dim %x, %c0 : tensor<?x?xf32>
  %length = tensor.dim %x, %c1 : tensor<?x?xf32>
  %numbers = tensor.empty(%rows) : tensor<?xf32>
  %elements = tensor.empty(%rows, %length) : tensor<?x?xf32>
  %from = linalg.fill ins(%least : f32) outs(%numbers : tensor<?xf32>) -> tensor<?xf32>
  %most = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%from : tensor<?xf32>) {
  ^bb0(%v: f32, %sofar: f32):
    %larger = arith.maximumf %v, %sofar : f32
    linalg.yield %larger : f32
  } -> tensor<?xf32>
  %powers = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %most : tensor<?x?xf32>, tensor<?xf32>) outs(%elements : tensor<?x?xf32>) {
  ^bb0(%v: f32, %m: f32, %o: f32):
    %less = arith.subf %v, %m : f32
    %power = math.exp %less : f32
    linalg.yield %power : f32
  } -> tensor<?x?xf32>
  %nothing = linalg.fill ins(%zero : f32) outs(%numbers : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%powers : tensor<?x?xf32>) outs(%nothing : tensor<?xf32>) {
  ^bb0(%v: f32, %sofar: f32):
    %more = arith.addf %v, %sofar : f32
    linalg.yield %more : f32
  } -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%powers, %sum : tensor<?x?xf32>, tensor<?xf32>) outs(%elements : tensor<?x?xf32>) {
  ^bb0(%v: f32, %s: f32, %o: f32):
    %part = arith.divf %v, %s : f32
    linalg.yield %part : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// A normalization whose numbers keep a dimension of size one, on rows of two dimensions.
#all3 = affine_map<(b, i, k) -> (b, i, k)>
#kept3 = affine_map<(b, i, k) -> (b, i, 0)>
#step3 = affine_map<(b, i, k) -> (k)>
func.func @normalized(%x: tensor<3x5x96xf32>, %gamma: tensor<96xf32>, %beta: tensor<96xf32>) -> tensor<3x5x96xf32> {
  %zero = arith.constant 0.0 : f32
  %length = arith.constant 96.0 : f32
  %little = arith.constant 1.0e-5 : f32
  %numbers = tensor.empty() : tensor<3x5x1xf32>
  %elements = tensor.empty() : tensor<3x5x96xf32>
  %nothing = linalg.fill ins(%zero : f32) outs(%numbers : tensor<3x5x1xf32>) -> tensor<3x5x1xf32>
  %sum = linalg.generic {indexing_maps = [#all3, #kept3], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<3x5x96xf32>) outs(%nothing : tensor<3x5x1xf32>) {
  ^bb0(%v: f32, %sofar: f32):
    %more = arith.addf %v, %sofar : f32
    linalg.yield %more : f32
  } -> tensor<3x5x1xf32>
  %mean = linalg.generic {indexing_maps = [#all3, #all3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%sum : tensor<3x5x1xf32>) outs(%numbers : tensor<3x5x1xf32>) {
  ^bb0(%v: f32, %o: f32):
    %m = arith.divf %v, %length : f32
    linalg.yield %m : f32
  } -> tensor<3x5x1xf32>
  %squares = linalg.generic
      {indexing_maps = [#all3, #kept3, #kept3], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %mean : tensor<3x5x96xf32>, tensor<3x5x1xf32>) outs(%nothing : tensor<3x5x1xf32>) {
  ^bb0(%v: f32, %m: f32, %sofar: f32):
    %off = arith.subf %v, %m : f32
    %square = arith.mulf %off, %off : f32
    %more = arith.addf %sofar, %square : f32
    linalg.yield %more : f32
  } -> tensor<3x5x1xf32>
  %y = linalg.generic {indexing_maps = [#all3, #kept3, #kept3, #step3, #step3, #all3],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %mean, %squares, %gamma, %beta
          : tensor<3x5x96xf32>, tensor<3x5x1xf32>, tensor<3x5x1xf32>, tensor<96xf32>, tensor<96xf32>)
      outs(%elements : tensor<3x5x96xf32>) {
  ^bb0(%v: f32, %m: f32, %s: f32, %g: f32, %b: f32, %o: f32):
    %variance = arith.divf %s, %length : f32
    %more = arith.addf %variance, %little : f32
    %root = math.rsqrt %more : f32
    %off = arith.subf %v, %m : f32
    %scaled = arith.mulf %off, %root : f32
    %weighted = arith.mulf %scaled, %g : f32
    %r = arith.addf %weighted, %b : f32
    linalg.yield %r : f32
  } -> tensor<3x5x96xf32>
  return %y : tensor<3x5x96xf32>
}

// In place: numbers and elements that were there before count.
func.func @in_place(%x: memref<9x70xf64>, %sums: memref<9xf64>) {
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<9x70xf64>) outs(%sums : memref<9xf64>) {
  ^bb0(%v: f64, %sofar: f64):
    %more = arith.addf %v, %sofar : f64
    linalg.yield %more : f64
  }
  linalg.generic {indexing_maps = [#row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%sums : memref<9xf64>) outs(%x : memref<9x70xf64>) {
  ^bb0(%s: f64, %v: f64):
    %r = arith.subf %s, %v : f64
    linalg.yield %r : f64
  }
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<9x70xf64>) outs(%sums : memref<9xf64>) {
  ^bb0(%v: f64, %sofar: f64):
    %larger = arith.maxnumf %v, %sofar : f64
    linalg.yield %larger : f64
  }
  return
}

// A block for each row; two reductions in one way through it, and a step that counts.
func.func @long(%x: tensor<2x5000xi32>) -> (tensor<2x5000xi32>, tensor<2xi32>, tensor<2xi32>) {
  %least = arith.constant -2147483648 : i32
  %zero = arith.constant 0 : i32
  %elements = tensor.empty() : tensor<2x5000xi32>
  %numbers = tensor.empty() : tensor<2xi32>
  %y = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<2x5000xi32>) outs(%elements : tensor<2x5000xi32>) {
  ^bb0(%v: i32, %o: i32):
    %k = linalg.index 1 : index
    %number = arith.index_cast %k : index to i32
    %r = arith.xori %v, %number : i32
    linalg.yield %r : i32
  } -> tensor<2x5000xi32>
  %from = linalg.fill ins(%least : i32) outs(%numbers : tensor<2xi32>) -> tensor<2xi32>
  %nothing = linalg.fill ins(%zero : i32) outs(%numbers : tensor<2xi32>) -> tensor<2xi32>
  %most = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<2x5000xi32>) outs(%from : tensor<2xi32>) {
  ^bb0(%v: i32, %sofar: i32):
    %larger = arith.maxsi %v, %sofar : i32
    linalg.yield %larger : i32
  } -> tensor<2xi32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<2x5000xi32>) outs(%nothing : tensor<2xi32>) {
  ^bb0(%v: i32, %sofar: i32):
    %more = arith.addi %v, %sofar : i32
    linalg.yield %more : i32
  } -> tensor<2xi32>
  %off = linalg.generic {indexing_maps = [#number, #number, #number], iterator_types = ["parallel"]}
      ins(%sum, %most : tensor<2xi32>, tensor<2xi32>) outs(%numbers : tensor<2xi32>) {
  ^bb0(%s: i32, %m: i32, %o: i32):
    %r = arith.subi %s, %m : i32
    linalg.yield %r : i32
  } -> tensor<2xi32>
  return %y, %most, %off : tensor<2x5000xi32>, tensor<2xi32>, tensor<2xi32>
}

// linalg.softmax with what is in front; its few rows have a block each.
func.func @shares(%x: tensor<3x2x2500xf32>) -> tensor<3x2x2500xf32> {
  %scale = arith.constant 0.125 : f32
  %elements = tensor.empty() : tensor<3x2x2500xf32>
  %scaled = linalg.generic {indexing_maps = [#all3, #all3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<3x2x2500xf32>) outs(%elements : tensor<3x2x2500xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.mulf %v, %scale : f32
    linalg.yield %r : f32
  } -> tensor<3x2x2500xf32>
  %y = linalg.softmax dimension(2) ins(%scaled : tensor<3x2x2500xf32>) outs(%elements : tensor<3x2x2500xf32>)
      -> tensor<3x2x2500xf32>
  return %y : tensor<3x2x2500xf32>
}

// One row, whose number of rows is no dimension.
func.func @alone(%x: memref<1x4000xf32>, %y: memref<4000xf32>) {
  %zero = arith.constant 0.0 : f32
  %sum = memref.alloc() : memref<1xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<1xf32>)
  linalg.reduce {arith.addf} ins(%x : memref<1x4000xf32>) outs(%sum : memref<1xf32>) dimensions = [1]
  linalg.generic {indexing_maps = [#all, #row, #step], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : memref<1x4000xf32>, memref<1xf32>) outs(%y : memref<4000xf32>) {
  ^bb0(%v: f32, %s: f32, %o: f32):
    %r = arith.divf %v, %s : f32
    linalg.yield %r : f32
  }
  memref.dealloc %sum : memref<1xf32>
  return
}

// Neighbours in a row that are none in memory are left to other passes.
func.func @across(%x: memref<70x9xf32>, %y: memref<9x70xf32>) {
  %zero = arith.constant 0.0 : f32
  %sums = memref.alloc() : memref<9xf32>
  linalg.fill ins(%zero : f32) outs(%sums : memref<9xf32>)
  linalg.reduce {arith.addf} ins(%y : memref<9x70xf32>) outs(%sums : memref<9xf32>) dimensions = [1]
  linalg.generic {indexing_maps = [affine_map<(i, k) -> (k, i)>, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sums : memref<70x9xf32>, memref<9xf32>) outs(%y : memref<9x70xf32>) {
  ^bb0(%v: f32, %s: f32, %o: f32):
    %r = arith.addf %v, %s : f32
    linalg.yield %r : f32
  }
  memref.dealloc %sums : memref<9xf32>
  return
}

// What may lie elsewhere in the same memory is written when all rows have been read.
func.func @apart(%x: memref<9x70xf32>, %y: memref<9x70xf32>) {
  %zero = arith.constant 0.0 : f32
  %sums = memref.alloc() : memref<9xf32>
  linalg.fill ins(%zero : f32) outs(%sums : memref<9xf32>)
  linalg.reduce {arith.addf} ins(%x : memref<9x70xf32>) outs(%sums : memref<9xf32>) dimensions = [1]
  linalg.broadcast ins(%sums : memref<9xf32>) outs(%y : memref<9x70xf32>) dimensions = [1]
  memref.dealloc %sums : memref<9xf32>
  return
}
