// Tiles for a matrix unit, padded.
func.func @tiles(%x: tensor<?x?xf32>, %to: tensor<?x?x8x4xf32>) -> tensor<?x?x8x4xf32> {
  %zero = arith.constant 0.0 : f32
  %r = linalg.pack %x padding_value(%zero : f32) inner_dims_pos = [0, 1] inner_tiles = [8, 4]
    into %to : tensor<?x?xf32> -> tensor<?x?x8x4xf32>
  return %r : tensor<?x?x8x4xf32>
}

// Rows with gaps between them are no whole tensor, as which the caller takes them.
func.func @part(%x: tensor<?x?xf32>, %rows: index, %columns: index) -> tensor<?x?xf32> {
  %r = tensor.extract_slice %x[0, 0] [%rows, %columns] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// Of no known shape, what this folds to has no bytes.
func.func @zeros(%x: tensor<?x?xi32>) -> tensor<?x?xi32> {
  %r = arith.xori %x, %x : tensor<?x?xi32>
  return %r : tensor<?x?xi32>
}
