// Rules of offload-prepare-device that lanes.mlir leaves out, one kernel each, and functions that others bring.
gpu.module @more {
  func.func private @brought(f32) -> f32
  func.func private @filled(memref<?xf32>)
  gpu.func @ids(%x: memref<?xindex>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %which = gpu.subgroup_id : index
    memref.store %which, %x[%c0] : memref<?xindex>
    %count = gpu.num_subgroups : index
    memref.store %count, %x[%c1] : memref<?xindex>
    %global = gpu.global_id y
    memref.store %global, %x[%c2] : memref<?xindex>
    %cluster = gpu.cluster_id x
    memref.store %cluster, %x[%c3] : memref<?xindex>
    gpu.return
  }
  gpu.func @known(%x: memref<?xindex>) kernel attributes {known_block_size = array<i32: 128, 2, 1>} {
    %c0 = arith.constant 0 : index
    %count = gpu.num_subgroups : index
    memref.store %count, %x[%c0] : memref<?xindex>
    gpu.return
  }
  gpu.func @neighbours(%x: memref<?xf32>, %v: f32) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %width = arith.constant 16 : i32
    %a, %va = gpu.shuffle up %v, %one, %width : f32
    memref.store %a, %x[%c0] : memref<?xf32>
    gpu.return
  }
  gpu.func @own(%x: memref<?xi32>, %v: i32) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : index
    %r = gpu.all_reduce %v uniform {
    ^bb0(%a: i32, %b: i32):
      %m = arith.xori %a, %b : i32
      gpu.yield %m : i32
    } : (i32) -> i32
    memref.store %r, %x[%c0] : memref<?xi32>
    gpu.return
  }
  gpu.func @print(%x: i64, %y: i1, %z: bf16) kernel {
    gpu.printf "%05d|%hhu|%-8.3e|%c|100%%\n", %x, %y, %z, %x : i64, i1, bf16, i64
    gpu.return
  }
  gpu.func @calls(%x: memref<?xf32>, %v: f32) kernel {
    %c0 = arith.constant 0 : index
    %r = func.call @brought(%v) : (f32) -> f32
    memref.store %r, %x[%c0] : memref<?xf32>
    func.call @filled(%x) : (memref<?xf32>) -> ()
    gpu.return
  }
}
