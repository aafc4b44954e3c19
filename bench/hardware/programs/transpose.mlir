// out = transpose(x) for sides that are multiples of 64: a tile of 64 x 64 through workgroup memory, all accesses to
// global memory of 16 bytes. Each of 512 threads moves two runs of four elements there, and gathers two from columns.
// Four rows r of the tile have their runs at place (run xor r / 4 mod 8): the 32 lanes that read a column's pieces, and
// the eight that write a row's at a time, meet different banks.
#shared = #gpu.address_space<workgroup>
!tile = memref<64x64xf32, #shared>
!run = vector<4xf32>
gpu.module @kernels {
  gpu.func @transpose(%x: memref<?x?xf32>, %out: memref<?x?xf32>) workgroup(%tile: !tile) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %t = gpu.thread_id x
    %x0 = arith.muli %bx, %c64 : index
    %y0 = arith.muli %by, %c64 : index

    // 16 threads bring a row of the tile.
    %row0 = arith.divui %t, %c16 : index
    %run = arith.remui %t, %c16 : index
    %run_at = arith.muli %run, %c4 : index
    %col = arith.addi %x0, %run_at : index
    scf.for %further = %c0 to %c64 step %c32 {
      %row = arith.addi %row0, %further : index
      %from = arith.addi %y0, %row : index
      %v = vector.load %x[%from, %col] {alignment = 16 : i64} : memref<?x?xf32>, !run
      %fours = arith.divui %row, %c4 : index
      %turn = arith.remui %fours, %c8 : index
      %place = arith.xori %run, %turn : index
      %at = arith.muli %place, %c4 : index
      vector.store %v, %tile[%row, %at] {alignment = 16 : i64} : !tile, !run
    }
    gpu.barrier
    // A warp takes eight runs of four rows from each of four columns.
    %warp = arith.divui %t, %c32 : index
    %lane = arith.remui %t, %c32 : index
    %half = arith.remui %warp, %c2 : index
    %first = arith.divui %warp, %c2 : index
    %turn = arith.remui %lane, %c8 : index
    %within = arith.divui %lane, %c8 : index
    %skipped = arith.muli %half, %c8 : index
    %fours = arith.addi %skipped, %turn : index
    %r0 = arith.muli %fours, %c4 : index
    %r1 = arith.addi %r0, %c1 : index
    %r2 = arith.addi %r0, %c2 : index
    %r3 = arith.addi %r0, %c3 : index
    %to = arith.addi %y0, %r0 : index
    scf.for %further = %c0 to %c16 step %c8 {
      %columns = arith.addi %first, %further : index
      %place = arith.xori %columns, %turn : index
      %place_at = arith.muli %place, %c4 : index
      %at = arith.addi %place_at, %within : index
      %e0 = memref.load %tile[%r0, %at] : !tile
      %e1 = memref.load %tile[%r1, %at] : !tile
      %e2 = memref.load %tile[%r2, %at] : !tile
      %e3 = memref.load %tile[%r3, %at] : !tile
      %v = vector.from_elements %e0, %e1, %e2, %e3 : !run
      %column0 = arith.muli %columns, %c4 : index
      %column = arith.addi %column0, %within : index
      %row = arith.addi %x0, %column : index
      vector.store %v, %out[%row, %to] {alignment = 16 : i64} : memref<?x?xf32>, !run
    }
    gpu.return
  }
}
