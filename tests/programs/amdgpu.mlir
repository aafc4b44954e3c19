// targets: rocdl:gfx942
// Operations of AMD's GPUs, one kernel per group; those of other chips: amdgpu_gfx950.mlir, amdgpu_wave32.mlir.
!lds = memref<64xf32, #gpu.address_space<workgroup>>
!global = memref<64xf32, #gpu.address_space<global>>
!fat = memref<64xf32, #amdgpu.address_space<fat_raw_buffer>>
gpu.module @amdgpu {
  gpu.func @products(%x: memref<?xf16>, %y: memref<?xf32>, %which: vector<4xi8>) kernel {
    %c0 = arith.constant 0 : index
    %a = vector.load %x[%c0] : memref<?xf16>, vector<4xf16>
    %b = vector.load %x[%c0] : memref<?xf16>, vector<8xf16>
    %zero = arith.constant dense<0.0> : vector<4xf32>
    %d = amdgpu.mfma 16x16x16 %a * %a + %zero {abid = 0 : i32, cbsz = 0 : i32, blocks = 1 : i32} blgp = none
      : vector<4xf16>, vector<4xf16>, vector<4xf32>
    %e = amdgpu.sparse_mfma 16x16x32 %a * %b + %d sparse(%which : vector<4xi8>) {abid = 0 : i32, cbsz = 0 : i32}
      : vector<4xf16>, vector<8xf16>, vector<4xf32>
    vector.store %e, %y[%c0] : memref<?xf32>, vector<4xf32>
    gpu.return
  }
  gpu.func @buffers(%x: memref<64xf32>, %y: memref<64xi32>, %i: i32) kernel {
    %v = amdgpu.raw_buffer_load {boundsCheck = true, indexOffset = 1 : i32} %x[%i] : memref<64xf32>, i32 -> vector<4xf32>
    amdgpu.raw_buffer_store {boundsCheck = false} %v -> %x[%i] : vector<4xf32> -> memref<64xf32>, i32
    %f = vector.extract %v[0] : f32 from vector<4xf32>
    amdgpu.raw_buffer_atomic_fadd {boundsCheck = true} %f -> %x[%i] : f32 -> memref<64xf32>, i32
    amdgpu.raw_buffer_atomic_smax {boundsCheck = true} %i -> %y[%i] : i32 -> memref<64xi32>, i32
    amdgpu.raw_buffer_atomic_umin {boundsCheck = true} %i -> %y[%i] : i32 -> memref<64xi32>, i32
    %r = amdgpu.raw_buffer_atomic_cmpswap {boundsCheck = true} %i, %i -> %y[%i] : i32 -> memref<64xi32>, i32
    amdgpu.raw_buffer_store {boundsCheck = true} %r -> %y[%i] : i32 -> memref<64xi32>, i32
    gpu.return
  }
  gpu.func @fat(%x: memref<64xf32>, %i: index) kernel {
    %b = amdgpu.fat_raw_buffer_cast %x : memref<64xf32> to !fat
    %v = memref.load %b[%i] : !fat
    %c0 = arith.constant 0 : index
    memref.store %v, %b[%c0] : !fat
    gpu.return
  }
  gpu.func @gathered(%x: !global, %i: index) workgroup(%l: !lds) kernel {
    amdgpu.gather_to_lds %x[%i], %l[%i] : f32, !global, !lds
    gpu.return
  }
  gpu.func @lanes(%x: memref<?xi32>, %i: index) kernel {
    %v = memref.load %x[%i] : memref<?xi32>
    %d = amdgpu.dpp %v %v row_shl ( 0x1 : i32 ) {row_mask = 0xa : i32, bound_ctrl = true} : i32
    %s = amdgpu.swizzle_bitmode %d 1 2 4 : i32
    %w = rocdl.readfirstlane %s : i32
    %b = rocdl.ds_bpermute %w, %s : (i32, i32) -> i32
    memref.store %b, %x[%i] : memref<?xi32>
    gpu.return
  }
  gpu.func @order() kernel {
    amdgpu.lds_barrier
    amdgpu.sched_barrier allow = <valu|salu>
    amdgpu.memory_counter_wait load(0)
    rocdl.s.setprio 1
    rocdl.s.barrier
    rocdl.s.sleep 2
    rocdl.sched.barrier 0
    gpu.return
  }
  gpu.func @small(%x: memref<?xf32>, %i: index, %dice: i32) kernel {
    %a = memref.load %x[%i] : memref<?xf32>
    %p = amdgpu.packed_trunc_2xfp8 %a, %a into undef[word 1] : f32 to vector<4xf8E4M3FNUZ>
    %s = amdgpu.packed_stoch_round_fp8 %a + %dice into %p[1] : f32 to vector<4xf8E4M3FNUZ> into vector<4xf8E4M3FNUZ>
    %e = amdgpu.ext_packed_fp8 %s[1] : vector<4xf8E4M3FNUZ> to f32
    %t = rocdl.workitem.id.x : i32
    %g = arith.sitofp %t : i32 to f32
    %h = rocdl.sin %g f32 -> f32
    %r = arith.addf %e, %h : f32
    memref.store %r, %x[%i] : memref<?xf32>
    gpu.return
  }
}
