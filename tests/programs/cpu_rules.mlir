// targets: host:x86-64-v3,coroutines
// The CPU's rules, one kernel each: for golden/cpu_rules.lowered.check and golden/cpu_rules.llvm.check.
gpu.module @cpu {
  memref.global "private" @scratch : memref<8xf32, #gpu.address_space<workgroup>>
  gpu.func @ids(%x: memref<8xindex>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c6 = arith.constant 6 : index
    %thread = gpu.thread_id y
    memref.store %thread, %x[%c0] : memref<8xindex>
    %block = gpu.block_id y
    memref.store %block, %x[%c1] : memref<8xindex>
    %size = gpu.block_dim y
    memref.store %size, %x[%c2] : memref<8xindex>
    %grid = gpu.grid_dim y
    memref.store %grid, %x[%c3] : memref<8xindex>
    %blocks = gpu.cluster_dim_blocks y
    memref.store %blocks, %x[%c4] : memref<8xindex>
    %clusters = gpu.cluster_dim y
    memref.store %clusters, %x[%c5] : memref<8xindex>
    %place = gpu.cluster_block_id y
    memref.store %place, %x[%c6] : memref<8xindex>
    gpu.return
  }
  gpu.func @lane(%x: memref<8xindex>) kernel {
    %c0 = arith.constant 0 : index
    %lane = gpu.lane_id
    memref.store %lane, %x[%c0] : memref<8xindex>
    gpu.return
  }
  gpu.func @numbered(%x: memref<8xf32>) workgroup(%w: memref<8xf32, 3>) kernel {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<8xf32>
    memref.store %v, %w[%t] : memref<8xf32, 3>
    gpu.barrier
    %c7 = arith.constant 7 : index
    %i = arith.subi %c7, %t : index
    %r = memref.load %w[%i] : memref<8xf32, 3>
    memref.store %r, %x[%t] : memref<8xf32>
    gpu.return
  }
  gpu.func @plain(%x: memref<?xf32>) kernel {
    %b = gpu.block_id x
    %n = gpu.block_dim x
    %t = gpu.thread_id x
    %s = arith.muli %b, %n : index
    %i = arith.addi %s, %t : index
    %v = memref.load %x[%i] : memref<?xf32>
    %r = arith.addf %v, %v : f32
    memref.store %r, %x[%i] : memref<?xf32>
    gpu.return
  }
  gpu.func @memory(%x: memref<?xf32>) workgroup(%w: memref<16xf32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf32>
    %s = memref.get_global @scratch : memref<8xf32, #gpu.address_space<workgroup>>
    %d = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    memref.store %v, %w[%t] : memref<16xf32, #gpu.address_space<workgroup>>
    memref.store %v, %s[%t] : memref<8xf32, #gpu.address_space<workgroup>>
    %byte = arith.fptoui %v : f32 to i8
    memref.store %byte, %d[%t] : memref<?xi8, #gpu.address_space<workgroup>>
    gpu.barrier
    %a = memref.load %w[%c0] : memref<16xf32, #gpu.address_space<workgroup>>
    %b = memref.load %s[%c0] : memref<8xf32, #gpu.address_space<workgroup>>
    %c = memref.load %d[%c0] : memref<?xi8, #gpu.address_space<workgroup>>
    %e = arith.uitofp %c : i8 to f32
    %f = arith.addf %a, %b : f32
    %g = arith.addf %e, %f : f32
    memref.store %g, %x[%t] : memref<?xf32>
    gpu.return
  }
  gpu.func @lanes(%x: memref<?xi32>) kernel {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xi32>
    %r = gpu.subgroup_broadcast %v, first_active_lane : i32
    memref.store %r, %x[%t] : memref<?xi32>
    gpu.return
  }
  gpu.func @fail(%x: memref<?xi32>) kernel {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : i32
    %v = memref.load %x[%t] : memref<?xi32>
    %good = arith.cmpi sge, %v, %c0 : i32
    cf.assert %good, "negative"
    gpu.return
  }
}
