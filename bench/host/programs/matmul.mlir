// c = a b in tiles of 64 x 64, for matrices whose sides are multiples of 64. 16 x 16 threads bring 16 columns of a and
// 16 rows of b at a time into workgroup memory; each keeps 4 x 4 sums, its rows and columns 16 apart.
#shared = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @matmul_kernel(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>)
        workgroup(%ta: memref<64x16xf32, #shared>, %tb: memref<16x64xf32, #shared>) kernel
        attributes {known_block_size = array<i32: 16, 16, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      %c32 = arith.constant 32 : index
      %c48 = arith.constant 48 : index
      %c64 = arith.constant 64 : index
      %zero = arith.constant 0.0 : f32
      %size = memref.dim %a, %c1 : memref<?x?xf32>
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %tx = gpu.thread_id x
      %ty = gpu.thread_id y
      %row0 = arith.muli %by, %c64 : index
      %col0 = arith.muli %bx, %c64 : index
      %x1 = arith.addi %tx, %c16 : index
      %x2 = arith.addi %tx, %c32 : index
      %x3 = arith.addi %tx, %c48 : index
      %y1 = arith.addi %ty, %c16 : index
      %y2 = arith.addi %ty, %c32 : index
      %y3 = arith.addi %ty, %c48 : index
      %row_0 = arith.addi %row0, %ty : index
      %row_1 = arith.addi %row0, %y1 : index
      %row_2 = arith.addi %row0, %y2 : index
      %row_3 = arith.addi %row0, %y3 : index
      %col_0 = arith.addi %col0, %tx : index
      %col_1 = arith.addi %col0, %x1 : index
      %col_2 = arith.addi %col0, %x2 : index
      %col_3 = arith.addi %col0, %x3 : index
      %sum:16 = scf.for %k0 = %c0 to %size step %c16 iter_args(
          %o00 = %zero, %o01 = %zero, %o02 = %zero, %o03 = %zero,
          %o10 = %zero, %o11 = %zero, %o12 = %zero, %o13 = %zero,
          %o20 = %zero, %o21 = %zero, %o22 = %zero, %o23 = %zero,
          %o30 = %zero, %o31 = %zero, %o32 = %zero, %o33 = %zero)
          -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) {
        %ka = arith.addi %k0, %tx : index
        %kb = arith.addi %k0, %ty : index
        %from_a0 = memref.load %a[%row_0, %ka] : memref<?x?xf32>
        memref.store %from_a0, %ta[%ty, %tx] : memref<64x16xf32, #shared>
        %from_a1 = memref.load %a[%row_1, %ka] : memref<?x?xf32>
        memref.store %from_a1, %ta[%y1, %tx] : memref<64x16xf32, #shared>
        %from_a2 = memref.load %a[%row_2, %ka] : memref<?x?xf32>
        memref.store %from_a2, %ta[%y2, %tx] : memref<64x16xf32, #shared>
        %from_a3 = memref.load %a[%row_3, %ka] : memref<?x?xf32>
        memref.store %from_a3, %ta[%y3, %tx] : memref<64x16xf32, #shared>
        %from_b0 = memref.load %b[%kb, %col_0] : memref<?x?xf32>
        memref.store %from_b0, %tb[%ty, %tx] : memref<16x64xf32, #shared>
        %from_b1 = memref.load %b[%kb, %col_1] : memref<?x?xf32>
        memref.store %from_b1, %tb[%ty, %x1] : memref<16x64xf32, #shared>
        %from_b2 = memref.load %b[%kb, %col_2] : memref<?x?xf32>
        memref.store %from_b2, %tb[%ty, %x2] : memref<16x64xf32, #shared>
        %from_b3 = memref.load %b[%kb, %col_3] : memref<?x?xf32>
        memref.store %from_b3, %tb[%ty, %x3] : memref<16x64xf32, #shared>
        gpu.barrier
        %next:16 = scf.for %k = %c0 to %c16 step %c1 iter_args(
            %s00 = %o00, %s01 = %o01, %s02 = %o02, %s03 = %o03, %s10 = %o10, %s11 = %o11, %s12 = %o12, %s13 = %o13,
            %s20 = %o20, %s21 = %o21, %s22 = %o22, %s23 = %o23, %s30 = %o30, %s31 = %o31, %s32 = %o32, %s33 = %o33)
            -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) {
          %a0 = memref.load %ta[%ty, %k] : memref<64x16xf32, #shared>
          %a1 = memref.load %ta[%y1, %k] : memref<64x16xf32, #shared>
          %a2 = memref.load %ta[%y2, %k] : memref<64x16xf32, #shared>
          %a3 = memref.load %ta[%y3, %k] : memref<64x16xf32, #shared>
          %b0 = memref.load %tb[%k, %tx] : memref<16x64xf32, #shared>
          %b1 = memref.load %tb[%k, %x1] : memref<16x64xf32, #shared>
          %b2 = memref.load %tb[%k, %x2] : memref<16x64xf32, #shared>
          %b3 = memref.load %tb[%k, %x3] : memref<16x64xf32, #shared>
          %t00 = math.fma %a0, %b0, %s00 : f32
          %t01 = math.fma %a0, %b1, %s01 : f32
          %t02 = math.fma %a0, %b2, %s02 : f32
          %t03 = math.fma %a0, %b3, %s03 : f32
          %t10 = math.fma %a1, %b0, %s10 : f32
          %t11 = math.fma %a1, %b1, %s11 : f32
          %t12 = math.fma %a1, %b2, %s12 : f32
          %t13 = math.fma %a1, %b3, %s13 : f32
          %t20 = math.fma %a2, %b0, %s20 : f32
          %t21 = math.fma %a2, %b1, %s21 : f32
          %t22 = math.fma %a2, %b2, %s22 : f32
          %t23 = math.fma %a2, %b3, %s23 : f32
          %t30 = math.fma %a3, %b0, %s30 : f32
          %t31 = math.fma %a3, %b1, %s31 : f32
          %t32 = math.fma %a3, %b2, %s32 : f32
          %t33 = math.fma %a3, %b3, %s33 : f32
          scf.yield %t00, %t01, %t02, %t03, %t10, %t11, %t12, %t13,
            %t20, %t21, %t22, %t23, %t30, %t31, %t32, %t33
              : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32
        }
        gpu.barrier
        scf.yield %next#0, %next#1, %next#2, %next#3, %next#4, %next#5, %next#6, %next#7,
          %next#8, %next#9, %next#10, %next#11, %next#12, %next#13, %next#14, %next#15
            : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32
      }
      memref.store %sum#0, %c[%row_0, %col_0] : memref<?x?xf32>
      memref.store %sum#1, %c[%row_0, %col_1] : memref<?x?xf32>
      memref.store %sum#2, %c[%row_0, %col_2] : memref<?x?xf32>
      memref.store %sum#3, %c[%row_0, %col_3] : memref<?x?xf32>
      memref.store %sum#4, %c[%row_1, %col_0] : memref<?x?xf32>
      memref.store %sum#5, %c[%row_1, %col_1] : memref<?x?xf32>
      memref.store %sum#6, %c[%row_1, %col_2] : memref<?x?xf32>
      memref.store %sum#7, %c[%row_1, %col_3] : memref<?x?xf32>
      memref.store %sum#8, %c[%row_2, %col_0] : memref<?x?xf32>
      memref.store %sum#9, %c[%row_2, %col_1] : memref<?x?xf32>
      memref.store %sum#10, %c[%row_2, %col_2] : memref<?x?xf32>
      memref.store %sum#11, %c[%row_2, %col_3] : memref<?x?xf32>
      memref.store %sum#12, %c[%row_3, %col_0] : memref<?x?xf32>
      memref.store %sum#13, %c[%row_3, %col_1] : memref<?x?xf32>
      memref.store %sum#14, %c[%row_3, %col_2] : memref<?x?xf32>
      memref.store %sum#15, %c[%row_3, %col_3] : memref<?x?xf32>
      gpu.return
    }
  }

  func.func @matmul(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %rows = memref.dim %c, %c0 : memref<?x?xf32>
    %cols = memref.dim %c, %c1 : memref<?x?xf32>
    %gx = arith.divui %cols, %c64 : index
    %gy = arith.divui %rows, %c64 : index
    gpu.launch_func @kernels::@matmul_kernel blocks in (%gx, %gy, %c1) threads in (%c16, %c16, %c1)
        args(%a : memref<?x?xf32>, %b : memref<?x?xf32>, %c : memref<?x?xf32>)
    return
  }
}
