// The product of matrices as linalg has it, so many times over: tiles and matrix units are offload's own choice.
#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (RIGHT)>
#sum = affine_map<(i, j, k) -> (i, j)>
func.func @matmul(%a: memref<?x?xFACTOR>, %b: memref<?x?xFACTOR>, %c: memref<?x?xSUM>, %times: index) {
  %zero = arith.constant ZERO : SUM
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %times step %c1 {
    linalg.fill ins(%zero : SUM) outs(%c : memref<?x?xSUM>)
    linalg.matmul indexing_maps = [#left, #right, #sum]
      ins(%a, %b : memref<?x?xFACTOR>, memref<?x?xFACTOR>) outs(%c : memref<?x?xSUM>)
  }
  return
}
