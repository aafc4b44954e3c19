// targets: nvvm:sm_90 rocdl:gfx1100 host
// warp_execute_on_lane_0, on targets whose subgroups have 32 threads: a value that all get, and vectors in shares.
gpu.module @zero {
  gpu.func @same(%x: memref<?xf32>) kernel {
    %lane = gpu.lane_id
    %v = memref.load %x[%lane] : memref<?xf32>
    %r = gpu.warp_execute_on_lane_0(%lane)[32] -> (f32) {
      %s = arith.addf %v, %v : f32
      gpu.yield %s : f32
    }
    memref.store %r, %x[%lane] : memref<?xf32>
    gpu.return
  }
  gpu.func @shares(%x: memref<?xi32>) kernel {
    %lane = gpu.lane_id
    %v = vector.load %x[%lane] : memref<?xi32>, vector<1xi32>
    %r = gpu.warp_execute_on_lane_0(%lane)[32] args(%v : vector<1xi32>) -> (vector<1xi32>) {
    ^bb0(%all: vector<32xi32>):
      %s = arith.addi %all, %all : vector<32xi32>
      gpu.yield %s : vector<32xi32>
    }
    vector.store %r, %x[%lane] : memref<?xi32>, vector<1xi32>
    gpu.return
  }
}
