// The accelerations of bodies that attract each other, softened. Each block brings 256 bodies at a time into workgroup
// memory, where each of its threads adds up what they do to its own body.
#shared = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @n_body_kernel(%x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32>, %mass: memref<?xf32>,
                            %ax: memref<?xf32>, %ay: memref<?xf32>, %az: memref<?xf32>, %softening: f32)
        workgroup(%tx: memref<256xf32, #shared>, %ty: memref<256xf32, #shared>, %tz: memref<256xf32, #shared>,
                  %tm: memref<256xf32, #shared>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c256 = arith.constant 256 : index
      %zero = arith.constant 0.0 : f32
      %n = memref.dim %x, %c0 : memref<?xf32>
      %block = gpu.block_id x
      %t = gpu.thread_id x
      %start = arith.muli %block, %c256 : index
      %i = arith.addi %start, %t : index
      %inside = arith.cmpi ult, %i, %n : index
      %last = arith.subi %n, %c1 : index
      %own = arith.minui %i, %last : index
      %xi = memref.load %x[%own] : memref<?xf32>
      %yi = memref.load %y[%own] : memref<?xf32>
      %zi = memref.load %z[%own] : memref<?xf32>
      %sum:3 = scf.for %tile = %c0 to %n step %c256
          iter_args(%fx = %zero, %fy = %zero, %fz = %zero) -> (f32, f32, f32) {
        %from = arith.addi %tile, %t : index
        %there = arith.cmpi ult, %from, %n : index
        %source = arith.minui %from, %last : index
        %sx = memref.load %x[%source] : memref<?xf32>
        %sy = memref.load %y[%source] : memref<?xf32>
        %sz = memref.load %z[%source] : memref<?xf32>
        %sm = memref.load %mass[%source] : memref<?xf32>
        // Past the end there is no mass.
        %m_or_none = arith.select %there, %sm, %zero : f32
        memref.store %sx, %tx[%t] : memref<256xf32, #shared>
        memref.store %sy, %ty[%t] : memref<256xf32, #shared>
        memref.store %sz, %tz[%t] : memref<256xf32, #shared>
        memref.store %m_or_none, %tm[%t] : memref<256xf32, #shared>
        gpu.barrier
        %next:3 = scf.for %j = %c0 to %c256 step %c1
            iter_args(%gx = %fx, %gy = %fy, %gz = %fz) -> (f32, f32, f32) {
          %xj = memref.load %tx[%j] : memref<256xf32, #shared>
          %yj = memref.load %ty[%j] : memref<256xf32, #shared>
          %zj = memref.load %tz[%j] : memref<256xf32, #shared>
          %mj = memref.load %tm[%j] : memref<256xf32, #shared>
          %dx = arith.subf %xj, %xi : f32
          %dy = arith.subf %yj, %yi : f32
          %dz = arith.subf %zj, %zi : f32
          %r0 = math.fma %dx, %dx, %softening : f32
          %r1 = math.fma %dy, %dy, %r0 : f32
          %r2 = math.fma %dz, %dz, %r1 : f32
          %inverse = math.rsqrt %r2 : f32
          %square = arith.mulf %inverse, %inverse : f32
          %cube = arith.mulf %square, %inverse : f32
          %pull = arith.mulf %mj, %cube : f32
          %hx = math.fma %pull, %dx, %gx : f32
          %hy = math.fma %pull, %dy, %gy : f32
          %hz = math.fma %pull, %dz, %gz : f32
          scf.yield %hx, %hy, %hz : f32, f32, f32
        }
        gpu.barrier
        scf.yield %next#0, %next#1, %next#2 : f32, f32, f32
      }
      scf.if %inside {
        memref.store %sum#0, %ax[%i] : memref<?xf32>
        memref.store %sum#1, %ay[%i] : memref<?xf32>
        memref.store %sum#2, %az[%i] : memref<?xf32>
      }
      gpu.return
    }
  }

  func.func @n_body(%x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32>, %mass: memref<?xf32>, %ax: memref<?xf32>,
                    %ay: memref<?xf32>, %az: memref<?xf32>, %softening: f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %blocks = arith.ceildivui %n, %c256 : index
    gpu.launch_func @kernels::@n_body_kernel blocks in (%blocks, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%x : memref<?xf32>, %y : memref<?xf32>, %z : memref<?xf32>, %mass : memref<?xf32>, %ax : memref<?xf32>,
             %ay : memref<?xf32>, %az : memref<?xf32>, %softening : f32)
    return
  }
}
