// Variables of a program of PyTorch: a seed, a mean of what came by, a table that never changes.
ml_program.global private mutable @seed(dense<7> : tensor<i64>) : tensor<i64>
ml_program.global private mutable @mean(dense<1.0> : tensor<2xf32>) : tensor<2xf32>
ml_program.global private @table(dense<[3.0, 5.0]> : tensor<2xf32>) : tensor<2xf32>
ml_program.global private mutable @calls(0 : i64) : i64

// What is stored is used again.
func.func @next() -> tensor<i64> {
  %old = ml_program.global_load @seed : tensor<i64>
  %value = tensor.extract %old[] : tensor<i64>
  %factor = arith.constant 6364136223846793005 : i64
  %product = arith.muli %value, %factor : i64
  %new = tensor.from_elements %product : tensor<i64>
  ml_program.global_store @seed = %new : tensor<i64>
  return %new : tensor<i64>
}

// What was loaded before a store stays.
func.func @swap(%new: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %before = ml_program.global_load @mean : tensor<2xf32>
  ml_program.global_store @mean = %new : tensor<2xf32>
  %after = ml_program.global_load @mean : tensor<2xf32>
  return %before, %after : tensor<2xf32>, tensor<2xf32>
}

func.func @scaled() -> (tensor<2xf32>, i64) {
  %mean = ml_program.global_load @mean : tensor<2xf32>
  %table = ml_program.global_load_const @table : tensor<2xf32>
  %product = arith.mulf %mean, %table : tensor<2xf32>
  %one = arith.constant 1 : i64
  %before = ml_program.global_load @calls : i64
  %calls = arith.addi %before, %one : i64
  ml_program.global_store @calls = %calls : i64
  return %product, %calls : tensor<2xf32>, i64
}
