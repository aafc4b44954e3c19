// targets: nvvm:sm_90a
// Operations of the nvvm dialect in a kernel: what is an intrinsic of LLVM stays, the rest becomes inline PTX.
gpu.module @nvvm {
  gpu.func @lanes(%x: memref<64xi32>, %v: i32) kernel {
    %c0 = arith.constant 0 : index
    %all = arith.constant -1 : i32
    %one = arith.constant 1 : i32
    %clamp = arith.constant 31 : i32
    %s = nvvm.shfl.sync bfly %all, %v, %one, %clamp : i32 -> i32
    %r = nvvm.redux.sync umax %s, %all : i32 -> i32
    %p = arith.trunci %r : i32 to i1
    %b = nvvm.vote.sync ballot %all, %p -> i32
    %m = nvvm.match.sync any %all, %b : i32 -> i32
    %l = nvvm.read.ptx.sreg.laneid : i32
    %sum = arith.addi %m, %l : i32
    memref.store %sum, %x[%c0] : memref<64xi32>
    gpu.return
  }
  gpu.func @reduced(%x: memref<64xi32>, %v: i32) kernel {
    %c0 = arith.constant 0 : index
    %r = gpu.subgroup_reduce add %v uniform : (i32) -> i32
    memref.store %r, %x[%c0] : memref<64xi32>
    gpu.return
  }
  gpu.func @text(%x: memref<64xi32>, %v: i32) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = nvvm.inline_ptx "brev.b32 $0, $1;" ro(%v : i32) -> i32
    %s = llvm.inline_asm "popc.b32 $0, $1;", "=r,r" %r : (i32) -> i32
    memref.store %r, %x[%c0] : memref<64xi32>
    memref.store %s, %x[%c1] : memref<64xi32>
    gpu.return
  }
  gpu.func @changed(%x: memref<64xi32>, %v: i32) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a = arith.addi %v, %v : i32
    %b = arith.addi %v, %v : i32
    nvvm.inline_ptx "add.s32 $0, $0, 1;" rw(%a : i32)
    memref.store %a, %x[%c0] : memref<64xi32>
    memref.store %b, %x[%c1] : memref<64xi32>
    gpu.return
  }
  gpu.func @constants(%x: memref<64xf32>, %a: !llvm.ptr<3>, %n: i32) kernel {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %half = arith.constant 0.5 : f32
    %bits = arith.constant 4 : i32
    nvvm.mbarrier.init %a, %n, predicate = %true : !llvm.ptr<3>, i32, i1
    %r = nvvm.inline_ptx "ex2.approx.f32 $0, $1;" ro(%half : f32) -> f32
    nvvm.inline_ptx "pmevent $0;" ro(%bits : i32)
    memref.store %r, %x[%c0] : memref<64xf32>
    gpu.return
  }
  gpu.func @product(%x: memref<64xf32>, %a: i32) kernel {
    %c0 = arith.constant 0 : index
    %z = arith.constant 0.0 : f32
    %d = nvvm.mma.sync A[%a, %a, %a, %a] B[%a, %a] C[%z, %z, %z, %z]
      {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>,
       multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
      : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    %e = llvm.extractvalue %d[0] : !llvm.struct<(f32, f32, f32, f32)>
    memref.store %e, %x[%c0] : memref<64xf32>
    gpu.return
  }
  gpu.func @order(%v: i32) kernel {
    nvvm.barrier0
    nvvm.bar.warp.sync %v : i32
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 1
    %lead = nvvm.elect.sync -> i1
    nvvm.fence.mbarrier.init
    nvvm.griddepcontrol wait
    nvvm.setmaxregister increase 232
    nvvm.wgmma.fence.aligned
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    gpu.return
  }
}
