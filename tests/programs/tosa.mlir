// The end of a network as TensorFlow and PyTorch write it in TOSA.
func.func @classify(%x: tensor<1x8x8x3xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>)
    -> (tensor<1x4xf32>, tensor<1xi32>) {
  %zero = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %c = tosa.conv2d %x, %w, %b, %zero, %zero {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>,
    stride = array<i64: 1, 1>} : (tensor<1x8x8x3xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>, tensor<1xf32>, tensor<1xf32>)
    -> tensor<1x8x8x4xf32>
  %r = tosa.clamp %c {min_val = 0.0 : f32, max_val = 6.0 : f32} : (tensor<1x8x8x4xf32>) -> tensor<1x8x8x4xf32>
  %p = tosa.avg_pool2d %r, %zero, %zero {acc_type = f32, kernel = array<i64: 8, 8>, pad = array<i64: 0, 0, 0, 0>,
    stride = array<i64: 1, 1>} : (tensor<1x8x8x4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1x1x4xf32>
  %s = tosa.const_shape {values = dense<[1, 4]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %f = tosa.reshape %p, %s : (tensor<1x1x1x4xf32>, !tosa.shape<2>) -> tensor<1x4xf32>
  %e = tosa.exp %f : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %sum = tosa.reduce_sum %e {axis = 1 : i32} : (tensor<1x4xf32>) -> tensor<1x1xf32>
  %rec = tosa.reciprocal %sum : (tensor<1x1xf32>) -> tensor<1x1xf32>
  %shift = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  %m = tosa.mul %e, %rec, %shift : (tensor<1x4xf32>, tensor<1x1xf32>, tensor<1xi8>) -> tensor<1x4xf32>
  %a = tosa.argmax %m {axis = 1 : i32} : (tensor<1x4xf32>) -> tensor<1xi32>
  return %m, %a : tensor<1x4xf32>, tensor<1xi32>
}

func.func @bytes(%x: tensor<2x5xi8>, %rows: tensor<2x3xi32>, %v: tensor<2x7x4xi8>)
    -> (tensor<2x10xi8>, tensor<2x3x4xi8>) {
  %factor = "tosa.const"() {values = dense<1073741824> : tensor<1xi32>} : () -> tensor<1xi32>
  %shift = "tosa.const"() {values = dense<31> : tensor<1xi8>} : () -> tensor<1xi8>
  %in = "tosa.const"() {values = dense<3> : tensor<1xi8>} : () -> tensor<1xi8>
  %out = "tosa.const"() {values = dense<-1> : tensor<1xi8>} : () -> tensor<1xi8>
  %r = tosa.rescale %x, %factor, %shift, %in, %out {scale32 = true, rounding_mode = SINGLE_ROUND, per_channel = false,
    input_unsigned = false, output_unsigned = false}
    : (tensor<2x5xi8>, tensor<1xi32>, tensor<1xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<2x5xi8>
  %c = tosa.concat %x, %r {axis = 1 : i32} : (tensor<2x5xi8>, tensor<2x5xi8>) -> tensor<2x10xi8>
  %g = tosa.gather %v, %rows : (tensor<2x7x4xi8>, tensor<2x3xi32>) -> tensor<2x3x4xi8>
  return %c, %g : tensor<2x10xi8>, tensor<2x3x4xi8>
}

func.func @doubled(%x: tensor<?xf32>, %times: tensor<i32>) -> tensor<?xf32> {
  %one = "tosa.const"() {values = dense<1> : tensor<i32>} : () -> tensor<i32>
  %zero = "tosa.const"() {values = dense<0> : tensor<i32>} : () -> tensor<i32>
  %r:2 = tosa.while_loop (%i = %zero, %a = %x) : (tensor<i32>, tensor<?xf32>) -> (tensor<i32>, tensor<?xf32>) {
    %more = tosa.greater %times, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tosa.yield %more : tensor<i1>
  } do {
  ^bb0(%i: tensor<i32>, %a: tensor<?xf32>):
    %next = tosa.add %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %twice = tosa.add %a, %a : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    tosa.yield %next, %twice : tensor<i32>, tensor<?xf32>
  }
  return %r#1 : tensor<?xf32>
}

tosa.variable @sum = dense<3.0> : tensor<2xf32>

func.func @added(%x: tensor<2xf32>) -> tensor<2xf32> {
  %before = tosa.variable_read @sum : tensor<2xf32>
  %after = tosa.add %before, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  tosa.variable_write @sum, %after : tensor<2xf32>
  return %before : tensor<2xf32>
}
