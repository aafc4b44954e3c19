// Every sparse operation, each on the stream of the one before: the calls and their arguments are upstream's.
func.func @products(%values: memref<?xf64>, %index: memref<?xindex>, %short: memref<?xi32>, %buffer: memref<?xi8>,
                    %n: index) -> (index, index, index) {
  %t0 = gpu.wait async
  %x, %t1 = gpu.create_dn_tensor async [%t0] %values, %n : index into memref<?xf64>
  %y, %t2 = gpu.create_dn_tensor async [%t1] %values, %n, %n : index, index into memref<?xf64>
  %coo, %t3 = gpu.create_coo async [%t2] %n, %n, %n, %index, %index, %values
    : memref<?xindex>, memref<?xindex>, memref<?xf64>
  %aos, %t4 = gpu.create_coo_aos async [%t3] %n, %n, %n, %index, %values : memref<?xindex>, memref<?xf64>
  %csr, %t5 = gpu.create_csr async [%t4] %n, %n, %n, %index, %short, %values
    : memref<?xindex>, memref<?xi32>, memref<?xf64>
  %csc, %t6 = gpu.create_csc async [%t5] %n, %n, %n, %short, %index, %values
    : memref<?xi32>, memref<?xindex>, memref<?xf64>
  %bsr, %t7 = gpu.create_bsr async [%t6] %n, %n, %n, %n, %n, %index, %short, %values
    : memref<?xindex>, memref<?xi32>, memref<?xf64>
  %s1, %t8 = gpu.spmv_buffer_size async [%t7] %csr, %x, %x into bf16
  %t9 = gpu.spmv async [%t8] %csr{TRANSPOSE}, %x, %x, %buffer : memref<?xi8> into complex<f32>
  %s2, %t10 = gpu.spmm_buffer_size async [%t9] %csr{TRANSPOSE}, %y{CONJUGATE_TRANSPOSE}, %y : index into i32
  %t11 = gpu.spmm async [%t10] %csr{TRANSPOSE}, %y{CONJUGATE_TRANSPOSE}, %y, %buffer : memref<?xi8> into i32
  %s3, %t12 = gpu.sddmm_buffer_size async [%t11] %y, %y{TRANSPOSE}, %csr into f16
  %t13 = gpu.sddmm async [%t12] %y, %y{TRANSPOSE}, %csr, %buffer : memref<?xi8> into f64
  %s, %t14 = gpu.spgemm_create_descr async [%t13]
  %s4, %t15 = gpu.spgemm_work_estimation_or_compute async [%t14] {WORK_ESTIMATION} %coo, %csc{TRANSPOSE}, %csr, %s, %n,
    %buffer : f32 into memref<?xi8>
  %s5, %t16 = gpu.spgemm_work_estimation_or_compute async [%t15] {COMPUTE} %coo, %csc, %csr, %s, %n, %buffer
    : complex<f64> into memref<?xi8>
  %rows, %cols, %nnz, %t17 = gpu.spmat_get_size async [%t16] %csr
  %t18 = gpu.set_csr_pointers async [%t17] %csr, %index, %short, %values
    : memref<?xindex>, memref<?xi32>, memref<?xf64>
  %t19 = gpu.spgemm_copy async [%t18] %coo, %csc, %csr, %s : complex<bf16>
  %t20 = gpu.spgemm_destroy_descr async [%t19] %s
  %t21 = gpu.destroy_sp_mat async [%t20] %csr
  %t22 = gpu.destroy_dn_tensor async [%t21] %x
  %t23 = gpu.destroy_dn_tensor async [%t22] %y
  gpu.wait [%t23]
  return %rows, %cols, %nnz : index, index, index
}

func.func @two_to_four(%values: memref<?xf16>, %buffer: memref<?xi8>, %n: index) {
  %t0 = gpu.wait async
  %b, %t1 = gpu.create_dn_tensor async [%t0] %values, %n, %n : index, index into memref<?xf16>
  %c, %t2 = gpu.create_dn_tensor async [%t1] %values, %n, %n : index, index into memref<?xf16>
  %a, %t3 = gpu.create_2to4_spmat async [%t2] {PRUNE_ONLY} %n, %n, %values : memref<?xf16>
  %sizes:3, %t4 = gpu.spmm_buffer_size async [%t3] %a, %b{TRANSPOSE}, %c : index, index, index into f16
  %t5 = gpu.spmm async [%t4] %a, %b{TRANSPOSE}, %c, %buffer, %buffer, %buffer
    : memref<?xi8>, memref<?xi8>, memref<?xi8> into f16
  %t6 = gpu.destroy_sp_mat async [%t5] %a
  %t7 = gpu.destroy_dn_tensor async [%t6] %b
  %t8 = gpu.destroy_dn_tensor async [%t7] %c
  gpu.wait [%t8]
  return
}
