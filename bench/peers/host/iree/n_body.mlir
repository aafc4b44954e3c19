// The accelerations of bodies that attract each other, softened.
#own = affine_map<(i, j) -> (i)>
#other = affine_map<(i, j) -> (j)>
func.func @n_body(%x: tensor<ROWSxf32>, %y: tensor<ROWSxf32>, %z: tensor<ROWSxf32>, %mass: tensor<ROWSxf32>,
                  %ax: tensor<ROWSxf32> {iree.abi.output = 0 : index},
                  %ay: tensor<ROWSxf32> {iree.abi.output = 1 : index},
                  %az: tensor<ROWSxf32> {iree.abi.output = 2 : index}, %softening: f32)
    -> (tensor<ROWSxf32>, tensor<ROWSxf32>, tensor<ROWSxf32>) {
  %zero = arith.constant 0.0 : f32
  %zx = linalg.fill ins(%zero : f32) outs(%ax : tensor<ROWSxf32>) -> tensor<ROWSxf32>
  %zy = linalg.fill ins(%zero : f32) outs(%ay : tensor<ROWSxf32>) -> tensor<ROWSxf32>
  %zz = linalg.fill ins(%zero : f32) outs(%az : tensor<ROWSxf32>) -> tensor<ROWSxf32>
  %r:3 = linalg.generic {indexing_maps = [#own, #own, #own, #other, #other, #other, #other, #own, #own, #own],
                         iterator_types = ["parallel", "reduction"]}
      ins(%x, %y, %z, %x, %y, %z, %mass : tensor<ROWSxf32>, tensor<ROWSxf32>, tensor<ROWSxf32>, tensor<ROWSxf32>,
          tensor<ROWSxf32>, tensor<ROWSxf32>, tensor<ROWSxf32>)
      outs(%zx, %zy, %zz : tensor<ROWSxf32>, tensor<ROWSxf32>, tensor<ROWSxf32>) {
  ^bb0(%xi: f32, %yi: f32, %zi: f32, %xj: f32, %yj: f32, %zj: f32, %m: f32, %fx: f32, %fy: f32, %fz: f32):
    %dx = arith.subf %xj, %xi : f32
    %dy = arith.subf %yj, %yi : f32
    %dz = arith.subf %zj, %zi : f32
    %xx = arith.mulf %dx, %dx : f32
    %yy = arith.mulf %dy, %dy : f32
    %dd = arith.mulf %dz, %dz : f32
    %r0 = arith.addf %xx, %softening : f32
    %r1 = arith.addf %r0, %yy : f32
    %r2 = arith.addf %r1, %dd : f32
    %inverse = math.rsqrt %r2 : f32
    %square = arith.mulf %inverse, %inverse : f32
    %cube = arith.mulf %square, %inverse : f32
    %pull = arith.mulf %m, %cube : f32
    %px = arith.mulf %pull, %dx : f32
    %py = arith.mulf %pull, %dy : f32
    %pz = arith.mulf %pull, %dz : f32
    %gx = arith.addf %fx, %px : f32
    %gy = arith.addf %fy, %py : f32
    %gz = arith.addf %fz, %pz : f32
    linalg.yield %gx, %gy, %gz : f32, f32, f32
  } -> (tensor<ROWSxf32>, tensor<ROWSxf32>, tensor<ROWSxf32>)
  return %r#0, %r#1, %r#2 : tensor<ROWSxf32>, tensor<ROWSxf32>, tensor<ROWSxf32>
}
