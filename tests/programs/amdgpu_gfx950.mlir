// targets: rocdl:gfx950
// Operations of AMD's GPUs that gfx950 has and gfx942 lacks.
!lds = memref<256xf16, #gpu.address_space<workgroup>>
gpu.module @gfx950 {
  gpu.func @scaled(%x: memref<?xi8>, %y: memref<?xf32>, %s: f8E8M0FNU) kernel {
    %c0 = arith.constant 0 : index
    %r = vector.load %x[%c0] : memref<?xi8>, vector<32xi8>
    %a = vector.bitcast %r : vector<32xi8> to vector<32xf8E4M3FN>
    %zero = arith.constant dense<0.0> : vector<4xf32>
    %d = amdgpu.scaled_mfma 16x16x128 (%s[0] * %a) * (%s[0] * %a) + %zero
      : f8E8M0FNU, vector<32xf8E4M3FN>, f8E8M0FNU, vector<32xf8E4M3FN>, vector<4xf32>
    vector.store %d, %y[%c0] : memref<?xf32>, vector<4xf32>
    gpu.return
  }
  gpu.func @packed(%x: memref<?xi8>, %y: memref<?xf32>, %i: index, %s: f32) kernel {
    %r = vector.load %x[%i] : memref<?xi8>, vector<4xi8>
    %a = vector.bitcast %r : vector<4xi8> to vector<4xf8E5M2>
    %v = amdgpu.scaled_ext_packed %a[1], %s : vector<4xf8E5M2> to vector<2xf32>
    %t = amdgpu.packed_scaled_trunc %v into undef[1], %s : vector<2xf32> to vector<4xf8E5M2>
    %b = vector.bitcast %t : vector<4xf8E5M2> to vector<4xi8>
    vector.store %b, %x[%i] : memref<?xi8>, vector<4xi8>
    vector.store %v, %y[%i] : memref<?xf32>, vector<2xf32>
    gpu.return
  }
  gpu.func @turned(%x: memref<?xf16>, %i: index) workgroup(%l: !lds) kernel {
    %v = amdgpu.transpose_load %l[%i] : !lds -> vector<4xf16>
    vector.store %v, %x[%i] : memref<?xf16>, vector<4xf16>
    gpu.return
  }
  gpu.func @swapped(%x: memref<?xi32>, %i: index) kernel {
    %v = memref.load %x[%i] : memref<?xi32>
    %s = amdgpu.permlane_swap %v 16 : i32
    %t = amdgpu.permlane_swap %s 32 {fetch_inactive = true} : i32
    memref.store %t, %x[%i] : memref<?xi32>
    gpu.return
  }
}
