// c = a b: f16 or bf16 factors (ELEMENT), sums and results in f32, for rows that are multiples of 128, columns of 256
// and depths of 64. A block makes a tile of 128 x 256: one warpgroup brings tiles through TMA into a ring of four
// stages, two others multiply 64 rows each with the warpgroup's instruction, m64n256k16. A stage is full when its bytes
// are there, and empty when all eight warps have read it. Blocks go through the tiles in groups of eight rows, so that
// those that run together share what they read.
#shared = #gpu.address_space<workgroup>
!bytes = memref<?xi8, #shared>
!a_tile = memref<128x64xELEMENT, #shared>
!a_half = memref<64x64xELEMENT, #shared>
!b_part = memref<64x64xELEMENT, #shared>
!b_tile = memref<64x256xELEMENT, #shared>
!a_map = !nvgpu.tensormap.descriptor<tensor = !a_tile, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero,
                                     interleave = none>
!b_map = !nvgpu.tensormap.descriptor<tensor = !b_part, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero,
                                     interleave = none>
!ring = !nvgpu.mbarrier.group<memorySpace = #shared, num_barriers = 4>
!a_operand = !nvgpu.warpgroup.descriptor<tensor = !a_half>
!b_operand = !nvgpu.warpgroup.descriptor<tensor = !b_tile>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x256xf32>>
!out = memref<?x?xf32>
!out_tile = memref<64x256xf32, strided<[?, 1], offset: ?>>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @matmul_kernel(%ma: !a_map, %mb: !b_map, %depth: index, %c: !out) kernel
        attributes {known_block_size = array<i32: 384, 1, 1>, nvvm.minctasm = 1 : i32} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c32 = arith.constant 32 : index
      %c64 = arith.constant 64 : index
      %c128 = arith.constant 128 : index
      %c192 = arith.constant 192 : index
      %c256 = arith.constant 256 : index
      %half_bytes = arith.constant 8192 : index
      %a_bytes = arith.constant 16384 : index
      %b_at_2 = arith.constant 24576 : index
      %b_at_3 = arith.constant 32768 : index
      %b_at_4 = arith.constant 40960 : index
      %stage_bytes = arith.constant 49152 : index
      %ticks = arith.constant 10000000 : index
      %t = gpu.thread_id x
      %lead = arith.cmpi eq, %t, %c0 : index
      // One number for all threads of a warp: read from its first lane, so that the compiler knows.
      %i0 = arith.constant 0 : i32
      %i32 = arith.constant 32 : i32
      %warp_of_thread = arith.divui %t, %c32 : index
      %warp_word = arith.index_cast %warp_of_thread : index to i32
      %warp_of_lane_0, %is_there = gpu.shuffle idx %warp_word, %i0, %i32 : i32
      %warp = arith.index_cast %warp_of_lane_0 : i32 to index
      %is_first_warp = arith.cmpi eq, %warp, %c0 : index
      %group = arith.divui %warp, %c4 : index

      // Where the block's tile is.
      %rows = memref.dim %c, %c0 : !out
      %cols = memref.dim %c, %c1 : !out
      %tile_rows = arith.divui %rows, %c128 : index
      %tile_cols = arith.divui %cols, %c256 : index
      %block = gpu.block_id x
      %in_group = arith.muli %tile_cols, %c8 : index
      %which = arith.divui %block, %in_group : index
      %first = arith.muli %which, %c8 : index
      %left = arith.subi %tile_rows, %first : index
      %high = arith.minui %left, %c8 : index
      %place = arith.remui %block, %in_group : index
      %down = arith.remui %place, %high : index
      %tile_row = arith.addi %first, %down : index
      %tile_col = arith.divui %place, %high : index
      %row = arith.muli %tile_row, %c128 : index
      %col = arith.muli %tile_col, %c256 : index
      %steps = arith.divui %depth, %c64 : index

      %all = gpu.dynamic_shared_memory : !bytes

      nvgpu.tma.prefetch.descriptor %ma, predicate = %lead : !a_map
      nvgpu.tma.prefetch.descriptor %mb, predicate = %lead : !b_map
      %full = nvgpu.mbarrier.create -> !ring
      %empty = nvgpu.mbarrier.create -> !ring
      scf.for %s = %c0 to %c4 step %c1 {
        nvgpu.mbarrier.init %full[%s], %c1, predicate = %lead : !ring
        nvgpu.mbarrier.init %empty[%s], %c8, predicate = %lead : !ring
      }
      nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
      gpu.barrier

      %producer = arith.cmpi eq, %group, %c0 : index
      scf.if %producer {
        nvvm.setmaxregister decrease 40
        // ptxas knows of a thread that was elected, not of thread 0, that it is alone: no loop around each load.
        %elected = nvvm.elect.sync -> i1
        %brings = arith.andi %elected, %is_first_warp : i1
        scf.if %brings {
          scf.for %k = %c0 to %steps step %c1 {
            %s = arith.remui %k, %c4 : index
            %round = arith.divui %k, %c4 : index
            %odd = arith.remui %round, %c2 : index
            // A barrier that nobody has used yet is past the phase before.
            %free = arith.cmpi eq, %odd, %c0 : index
            nvgpu.mbarrier.try_wait.parity %empty[%s], %free, %ticks : !ring
            nvgpu.mbarrier.arrive.expect_tx %full[%s], %stage_bytes : !ring
            %stage = arith.muli %s, %stage_bytes : index
            %b1 = arith.addi %stage, %a_bytes : index
            %b2 = arith.addi %stage, %b_at_2 : index
            %b3 = arith.addi %stage, %b_at_3 : index
            %b4 = arith.addi %stage, %b_at_4 : index
            %ta = memref.view %all[%stage][] : !bytes to !a_tile
            %tb1 = memref.view %all[%b1][] : !bytes to !b_part
            %tb2 = memref.view %all[%b2][] : !bytes to !b_part
            %tb3 = memref.view %all[%b3][] : !bytes to !b_part
            %tb4 = memref.view %all[%b4][] : !bytes to !b_part
            %deep = arith.muli %k, %c64 : index
            %col2 = arith.addi %col, %c64 : index
            %col3 = arith.addi %col, %c128 : index
            %col4 = arith.addi %col, %c192 : index
            nvgpu.tma.async.load %ma[%deep, %row], %full[%s] to %ta : !a_map, !ring -> !a_tile
            nvgpu.tma.async.load %mb[%col, %deep], %full[%s] to %tb1 : !b_map, !ring -> !b_part
            nvgpu.tma.async.load %mb[%col2, %deep], %full[%s] to %tb2 : !b_map, !ring -> !b_part
            nvgpu.tma.async.load %mb[%col3, %deep], %full[%s] to %tb3 : !b_map, !ring -> !b_part
            nvgpu.tma.async.load %mb[%col4, %deep], %full[%s] to %tb4 : !b_map, !ring -> !b_part
          }
        }
      } else {
        nvvm.setmaxregister increase 232
        %half = arith.subi %group, %c1 : index
        %a_shift = arith.muli %half, %half_bytes : index
        %lane = arith.remui %t, %c32 : index
        %speaks = arith.cmpi eq, %lane, %c0 : index
        %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
        %sum = scf.for %k = %c0 to %steps step %c1 iter_args(%before = %zero) -> !sums {
          %s = arith.remui %k, %c4 : index
          %round = arith.divui %k, %c4 : index
          %odd = arith.remui %round, %c2 : index
          %phase = arith.cmpi eq, %odd, %c1 : index
          nvgpu.mbarrier.try_wait.parity %full[%s], %phase, %ticks : !ring
          %stage = arith.muli %s, %stage_bytes : index
          %a_at = arith.addi %stage, %a_shift : index
          %b_at = arith.addi %stage, %a_bytes : index
          %ta = memref.view %all[%a_at][] : !bytes to !a_half
          %tb = memref.view %all[%b_at][] : !bytes to !b_tile
          %a = nvgpu.warpgroup.generate.descriptor %ta, %ma : !a_half, !a_map -> !a_operand
          %b = nvgpu.warpgroup.generate.descriptor %tb, %mb : !b_tile, !b_map -> !b_operand
          // One product stays in flight; the one before it has read its stage.
          %next = nvgpu.warpgroup.mma %a, %b, %before {transposeB, waitGroup = 1 : i64}
              : !a_operand, !b_operand, !sums -> !sums
          %later = arith.cmpi ugt, %k, %c0 : index
          %says = arith.andi %later, %speaks : i1
          scf.if %says {
            %last = arith.subi %k, %c1 : index
            %done = arith.remui %last, %c4 : index
            %token = nvgpu.mbarrier.arrive %empty[%done] : !ring -> !nvgpu.mbarrier.token
          }
          scf.yield %next : !sums
        }
        nvvm.wgmma.wait.group.sync.aligned 0
        %shift = arith.muli %half, %c64 : index
        %out_row = arith.addi %row, %shift : index
        // Rows of c begin at multiples of 1024 bytes, so two neighbours are stored at a time.
        %wide = arith.muli %tile_cols, %c256 : index
        %whole = memref.reinterpret_cast %c to offset: [0], sizes: [%rows, %wide], strides: [%wide, 1]
            : !out to memref<?x?xf32, strided<[?, 1]>>
        %tile = memref.subview %whole[%out_row, %col][64, 256][1, 1] : memref<?x?xf32, strided<[?, 1]>> to !out_tile
        %out = memref.assume_alignment %tile, 16 : !out_tile
        nvgpu.warpgroup.mma.store %sum, %out : !sums to !out_tile
      }
      gpu.return
    }
  }

  // The product, so many times over, on one stream.
  func.func @matmul(%a: memref<?x?xELEMENT>, %b: memref<?x?xELEMENT>, %c: !out, %times: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %c256 = arith.constant 256 : index
    %c384 = arith.constant 384 : index
    %bytes = arith.constant 196608 : i32
    %rows = memref.dim %c, %c0 : !out
    %cols = memref.dim %c, %c1 : !out
    %depth = memref.dim %a, %c1 : memref<?x?xELEMENT>
    %down = arith.divui %rows, %c128 : index
    %across = arith.divui %cols, %c256 : index
    %blocks = arith.muli %down, %across : index
    %any_a = memref.cast %a : memref<?x?xELEMENT> to memref<*xELEMENT>
    %any_b = memref.cast %b : memref<?x?xELEMENT> to memref<*xELEMENT>
    %ma = nvgpu.tma.create.descriptor %any_a box[%c128, %c64] : memref<*xELEMENT> -> !a_map
    %mb = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] : memref<*xELEMENT> -> !b_map
    %ready = gpu.wait async
    %done = scf.for %i = %c0 to %times step %c1 iter_args(%before = %ready) -> !gpu.async.token {
      %after = gpu.launch_func async [%before] @kernels::@matmul_kernel
          blocks in (%blocks, %c1, %c1) threads in (%c384, %c1, %c1) dynamic_shared_memory_size %bytes
          args(%ma : !a_map, %mb : !b_map, %depth : index, %c : !out)
      scf.yield %after : !gpu.async.token
    }
    gpu.wait [%done]
    return
  }
}
