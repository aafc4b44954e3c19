// Functions on tensors with bodies of their own: they call each other, branch between blocks, and their parallel
// loops keep tensors for themselves.
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
