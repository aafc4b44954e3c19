// out[i] = x[0] + ... + x[i]
func.func @scan(%x: tensor<ROWSxi32>, %out: tensor<ROWSxi32> {iree.abi.output = 0 : index}) -> tensor<ROWSxi32> {
  %zero = arith.constant 0 : i32
  %carry = tensor.empty() : tensor<i32>
  %start = linalg.fill ins(%zero : i32) outs(%carry : tensor<i32>) -> tensor<i32>
  %r:2 = iree_linalg_ext.scan dimension(0) inclusive(true) ins(%x : tensor<ROWSxi32>)
      outs(%out, %start : tensor<ROWSxi32>, tensor<i32>) {
  ^bb0(%a: i32, %b: i32):
    %sum = arith.addi %a, %b : i32
    iree_linalg_ext.yield %sum : i32
  } -> tensor<ROWSxi32>, tensor<i32>
  return %r#0 : tensor<ROWSxi32>
}
