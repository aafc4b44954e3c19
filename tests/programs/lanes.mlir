// One kernel per rule of offload-prepare-device, for golden/lanes.lowered.check.
gpu.module @lanes {
  gpu.func @shuffle(%x: memref<?xf16>, %offset: i32) kernel {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf16>
    %width = arith.constant 16 : i32
    %r, %valid = gpu.shuffle down %v, %offset, %width : f16
    memref.store %r, %x[%t] : memref<?xf16>
    gpu.return
  }
  gpu.func @rotate(%x: memref<?xi64>) kernel {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xi64>
    %r, %valid = gpu.rotate %v, 3, 32 : i64
    memref.store %r, %x[%t] : memref<?xi64>
    gpu.return
  }
  gpu.func @broadcast(%x: memref<?xi32>) kernel {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xi32>
    %r = gpu.subgroup_broadcast %v, first_active_lane : i32
    memref.store %r, %x[%t] : memref<?xi32>
    gpu.return
  }
  gpu.func @clusters(%x: memref<?xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xi32>
    %r = gpu.subgroup_reduce add %v cluster(size = 2, stride = 4) : (i32) -> i32
    memref.store %r, %x[%t] : memref<?xi32>
    gpu.return
  }
  gpu.func @active(%x: memref<?xi8>, %n: index) kernel {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xi8>
    %c = arith.cmpi ult, %t, %n : index
    scf.if %c {
      %r = gpu.subgroup_reduce maxsi %v : (i8) -> i8
      memref.store %r, %x[%t] : memref<?xi8>
    }
    gpu.return
  }
  gpu.func @block(%x: memref<?xbf16>) kernel {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xbf16>
    %r = gpu.all_reduce add %v {} : (bf16) -> bf16
    memref.store %r, %x[%t] : memref<?xbf16>
    gpu.return
  }
  gpu.func @ids(%x: memref<?xindex>) kernel {
    %block = gpu.cluster_block_id x
    %size = gpu.subgroup_size : index
    memref.store %size, %x[%block] : memref<?xindex>
    gpu.return
  }
  gpu.func @print(%x: i8, %y: f16, %z: index) kernel {
    gpu.printf "%ld %5.1f %d\n", %x, %y, %z : i8, f16, index
    gpu.return
  }
  gpu.func @check(%x: i1) kernel {
    cf.assert %x, "100%"
    gpu.return
  }
  gpu.func @product(%x: memref<1xf32>, %v: f32) kernel {
    %zero = arith.constant 0 : index
    %old = memref.atomic_rmw mulf %v, %x[%zero] : (f32, memref<1xf32>) -> f32
    gpu.return
  }
}
