// Operations that look the same, where other lanes are active: for golden/active_lanes.kernels.check.
gpu.module @m {
  gpu.func @first(%out: memref<?xi32>) kernel {
    %zero = arith.constant 0 : index
    %three = arith.constant 3 : index
    %t = gpu.thread_id x
    %v = arith.index_cast %t : index to i32
    %all = gpu.subgroup_broadcast %v, first_active_lane : i32
    %same = gpu.subgroup_broadcast %v, specific_lane %all : i32
    %again = gpu.subgroup_broadcast %v, specific_lane %all : i32
    memref.store %all, %out[%zero] : memref<?xi32>
    %rest = arith.remui %t, %three : index
    %here = arith.cmpi eq, %rest, %zero : index
    scf.if %here {
      memref.store %same, %out[%t] : memref<?xi32>
    } else {
      %some = gpu.subgroup_broadcast %v, first_active_lane : i32
      %sum = arith.addi %some, %again : i32
      memref.store %sum, %out[%t] : memref<?xi32>
    }
    gpu.return
  }
}
