// Inputs whose neighbours in memory are not the output's: each block takes a tile of them through its memory.
#own = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>

func.func @transpose(%x: memref<?x?xf32>, %out: memref<?x?xf32>) {
  linalg.transpose ins(%x : memref<?x?xf32>) outs(%out : memref<?x?xf32>) permutation = [1, 0]
  return
}

// All of every tile is there.
func.func @whole(%x: memref<96x64xi16>, %out: memref<64x96xi16>) {
  linalg.transpose ins(%x : memref<96x64xi16>) outs(%out : memref<64x96xi16>) permutation = [1, 0]
  return
}

// Pixels that have their channels side by side become one picture for each channel.
func.func @channels(%x: memref<2x9x11x40xf16>, %out: memref<2x40x9x11xf16>) {
  linalg.transpose ins(%x : memref<2x9x11x40xf16>) outs(%out : memref<2x40x9x11xf16>) permutation = [0, 3, 1, 2]
  return
}

// Two inputs through tiles, one beside them, what the output had, and the place.
func.func @mixed(%a: memref<70x?xf64>, %b: memref<70x?xi32>, %c: memref<?x70xf64>, %out: memref<?x70xf64>) {
  linalg.generic {indexing_maps = [#turned, #turned, #own, #own], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b, %c : memref<70x?xf64>, memref<70x?xi32>, memref<?x70xf64>) outs(%out : memref<?x70xf64>) {
  ^bb0(%u: f64, %v: i32, %w: f64, %old: f64):
    %j = linalg.index 1 : index
    %n = arith.index_cast %j : index to i32
    %vn = arith.addi %v, %n : i32
    %f = arith.sitofp %vn : i32 to f64
    %uw = arith.mulf %u, %w : f64
    %s = arith.addf %uw, %f : f64
    %r = arith.addf %s, %old : f64
    linalg.yield %r : f64
  }
  return
}

// The output, not the input, is laid out by columns; the input is a part of its memory.
func.func @columns(%x: memref<100x90xf32>, %out: memref<80x72xf32, strided<[1, 80]>>) {
  %part = memref.subview %x[3, 5] [80, 72] [1, 1] : memref<100x90xf32> to memref<80x72xf32, strided<[90, 1], offset: 275>>
  linalg.generic {indexing_maps = [#own, #own], iterator_types = ["parallel", "parallel"]}
      ins(%part : memref<80x72xf32, strided<[90, 1], offset: 275>>) outs(%out : memref<80x72xf32, strided<[1, 80]>>) {
  ^bb0(%v: f32, %old: f32):
    %r = arith.negf %v : f32
    linalg.yield %r : f32
  }
  return
}

// A thread for each element is as fast where there are few.
func.func @few(%x: memref<3x2000xf32>, %out: memref<2000x3xf32>) {
  linalg.transpose ins(%x : memref<3x2000xf32>) outs(%out : memref<2000x3xf32>) permutation = [1, 0]
  return
}
