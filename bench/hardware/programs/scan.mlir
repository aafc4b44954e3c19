// out[i] = x[0] + ... + x[i] in one launch that reads and writes each element once (Merrill and Garland, "Single-pass
// Parallel Prefix Scan with Decoupled Look-back", 2016), for lengths that are multiples of 4. A block of 256 threads
// scans a run of 4096 elements, says its sum, and looks back over the runs before its own: 32 at a time, until one is
// known up to its end.
//
// `states` begins with zeros and serves launches of one length, one after the other. Its first word counts the blocks
// that have begun: they take their runs from it, so that a run's predecessors are always under way, and a launch knows
// how many there were before it. A run's word holds what is known in the upper half (2 launch + 1: its sum; 2 launch +
// 2: the sum of all up to its end) and that sum in the lower one. Both come with one access, so the accesses need no
// order beyond that of each word, and what earlier launches left counts as unknown.
#shared = #gpu.address_space<workgroup>
!parts = memref<32xi32, #shared>
!words = memref<2xi64, #shared>
gpu.module @kernels {
  gpu.func @scan(%x: memref<?xi32>, %out: memref<?xi32>, %states: memref<?xi64>)
      workgroup(%parts: !parts, %words: !words) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 5 : i32} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c31 = arith.constant 31 : index
    %c32 = arith.constant 32 : index
    %c1024 = arith.constant 1024 : index
    %c4095 = arith.constant 4095 : index
    %c4096 = arith.constant 4096 : index
    %yes = arith.constant true
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i2 = arith.constant 2 : i32
    %i4 = arith.constant 4 : i32
    %i8 = arith.constant 8 : i32
    %i16 = arith.constant 16 : i32
    %i31 = arith.constant 31 : i32
    %i32 = arith.constant 32 : i32
    %l1 = arith.constant 1 : i64
    %l8 = arith.constant 8 : i64
    %l32 = arith.constant 32 : i64
    %zeros = arith.constant dense<0> : vector<4xi32>
    %t = gpu.thread_id x
    %lane = arith.remui %t, %c32 : index
    %group = arith.divui %t, %c32 : index
    %n = memref.dim %x, %c0 : memref<?xi32>
    %counter = memref.extract_aligned_pointer_as_index %states : memref<?xi64> -> index
    %counter_word = arith.index_cast %counter : index to i64
    %lead = arith.cmpi eq, %t, %c0 : index
    scf.if %lead {
      %p = llvm.inttoptr %counter_word : i64 to !llvm.ptr
      %begun = llvm.atomicrmw add %p, %l1 monotonic : !llvm.ptr, i64
      memref.store %begun, %words[%c0] : !words
    }
    gpu.barrier
    %ticket_word = memref.load %words[%c0] : !words
    %ticket = arith.index_cast %ticket_word : i64 to index
    %longer = arith.addi %n, %c4095 : index
    %runs = arith.divui %longer, %c4096 : index
    %launch = arith.divui %ticket, %runs : index
    %run = arith.remui %ticket, %runs : index
    %launch_word = arith.index_cast %launch : index to i32
    %twice = arith.muli %launch_word, %i2 : i32
    %has_sum = arith.addi %twice, %i1 : i32
    %has_all = arith.addi %twice, %i2 : i32
    %start = arith.muli %run, %c4096 : index
    %own_place = arith.muli %t, %c4 : index
    %first = arith.addi %start, %own_place : index

    // Four vectors of a thread, each next to its neighbours', and their sums up to each element.
    %in0 = arith.cmpi ult, %first, %n : index
    %v0 = scf.if %in0 -> vector<4xi32> {
      %v = vector.load %x[%first] {alignment = 16 : i64} : memref<?xi32>, vector<4xi32>
      scf.yield %v : vector<4xi32>
    } else {
      scf.yield %zeros : vector<4xi32>
    }
    %at1 = arith.addi %first, %c1024 : index
    %in1 = arith.cmpi ult, %at1, %n : index
    %v1 = scf.if %in1 -> vector<4xi32> {
      %v = vector.load %x[%at1] {alignment = 16 : i64} : memref<?xi32>, vector<4xi32>
      scf.yield %v : vector<4xi32>
    } else {
      scf.yield %zeros : vector<4xi32>
    }
    %at2 = arith.addi %at1, %c1024 : index
    %in2 = arith.cmpi ult, %at2, %n : index
    %v2 = scf.if %in2 -> vector<4xi32> {
      %v = vector.load %x[%at2] {alignment = 16 : i64} : memref<?xi32>, vector<4xi32>
      scf.yield %v : vector<4xi32>
    } else {
      scf.yield %zeros : vector<4xi32>
    }
    %at3 = arith.addi %at2, %c1024 : index
    %in3 = arith.cmpi ult, %at3, %n : index
    %v3 = scf.if %in3 -> vector<4xi32> {
      %v = vector.load %x[%at3] {alignment = 16 : i64} : memref<?xi32>, vector<4xi32>
      scf.yield %v : vector<4xi32>
    } else {
      scf.yield %zeros : vector<4xi32>
    }
    %e00 = vector.extract %v0[0] : i32 from vector<4xi32>
    %e01 = vector.extract %v0[1] : i32 from vector<4xi32>
    %e02 = vector.extract %v0[2] : i32 from vector<4xi32>
    %e03 = vector.extract %v0[3] : i32 from vector<4xi32>
    %s01 = arith.addi %e00, %e01 : i32
    %s02 = arith.addi %s01, %e02 : i32
    %s03 = arith.addi %s02, %e03 : i32
    %e10 = vector.extract %v1[0] : i32 from vector<4xi32>
    %e11 = vector.extract %v1[1] : i32 from vector<4xi32>
    %e12 = vector.extract %v1[2] : i32 from vector<4xi32>
    %e13 = vector.extract %v1[3] : i32 from vector<4xi32>
    %s11 = arith.addi %e10, %e11 : i32
    %s12 = arith.addi %s11, %e12 : i32
    %s13 = arith.addi %s12, %e13 : i32
    %e20 = vector.extract %v2[0] : i32 from vector<4xi32>
    %e21 = vector.extract %v2[1] : i32 from vector<4xi32>
    %e22 = vector.extract %v2[2] : i32 from vector<4xi32>
    %e23 = vector.extract %v2[3] : i32 from vector<4xi32>
    %s21 = arith.addi %e20, %e21 : i32
    %s22 = arith.addi %s21, %e22 : i32
    %s23 = arith.addi %s22, %e23 : i32
    %e30 = vector.extract %v3[0] : i32 from vector<4xi32>
    %e31 = vector.extract %v3[1] : i32 from vector<4xi32>
    %e32 = vector.extract %v3[2] : i32 from vector<4xi32>
    %e33 = vector.extract %v3[3] : i32 from vector<4xi32>
    %s31 = arith.addi %e30, %e31 : i32
    %s32 = arith.addi %s31, %e32 : i32
    %s33 = arith.addi %s32, %e33 : i32

    // The same over each group of 32 threads.
    %lane_word = arith.index_cast %lane : index to i32
    %takes1 = arith.cmpi uge, %lane_word, %i1 : i32
    %takes2 = arith.cmpi uge, %lane_word, %i2 : i32
    %takes4 = arith.cmpi uge, %lane_word, %i4 : i32
    %takes8 = arith.cmpi uge, %lane_word, %i8 : i32
    %takes16 = arith.cmpi uge, %lane_word, %i16 : i32
    %far0_1, %ok0_1 = gpu.shuffle up %s03, %i1, %i32 : i32
    %add0_1 = arith.select %takes1, %far0_1, %i0 : i32
    %g0_1 = arith.addi %s03, %add0_1 : i32
    %far0_2, %ok0_2 = gpu.shuffle up %g0_1, %i2, %i32 : i32
    %add0_2 = arith.select %takes2, %far0_2, %i0 : i32
    %g0_2 = arith.addi %g0_1, %add0_2 : i32
    %far0_4, %ok0_4 = gpu.shuffle up %g0_2, %i4, %i32 : i32
    %add0_4 = arith.select %takes4, %far0_4, %i0 : i32
    %g0_4 = arith.addi %g0_2, %add0_4 : i32
    %far0_8, %ok0_8 = gpu.shuffle up %g0_4, %i8, %i32 : i32
    %add0_8 = arith.select %takes8, %far0_8, %i0 : i32
    %g0_8 = arith.addi %g0_4, %add0_8 : i32
    %far0_16, %ok0_16 = gpu.shuffle up %g0_8, %i16, %i32 : i32
    %add0_16 = arith.select %takes16, %far0_16, %i0 : i32
    %g0_16 = arith.addi %g0_8, %add0_16 : i32
    %before0 = arith.subi %g0_16, %s03 : i32
    %far1_1, %ok1_1 = gpu.shuffle up %s13, %i1, %i32 : i32
    %add1_1 = arith.select %takes1, %far1_1, %i0 : i32
    %g1_1 = arith.addi %s13, %add1_1 : i32
    %far1_2, %ok1_2 = gpu.shuffle up %g1_1, %i2, %i32 : i32
    %add1_2 = arith.select %takes2, %far1_2, %i0 : i32
    %g1_2 = arith.addi %g1_1, %add1_2 : i32
    %far1_4, %ok1_4 = gpu.shuffle up %g1_2, %i4, %i32 : i32
    %add1_4 = arith.select %takes4, %far1_4, %i0 : i32
    %g1_4 = arith.addi %g1_2, %add1_4 : i32
    %far1_8, %ok1_8 = gpu.shuffle up %g1_4, %i8, %i32 : i32
    %add1_8 = arith.select %takes8, %far1_8, %i0 : i32
    %g1_8 = arith.addi %g1_4, %add1_8 : i32
    %far1_16, %ok1_16 = gpu.shuffle up %g1_8, %i16, %i32 : i32
    %add1_16 = arith.select %takes16, %far1_16, %i0 : i32
    %g1_16 = arith.addi %g1_8, %add1_16 : i32
    %before1 = arith.subi %g1_16, %s13 : i32
    %far2_1, %ok2_1 = gpu.shuffle up %s23, %i1, %i32 : i32
    %add2_1 = arith.select %takes1, %far2_1, %i0 : i32
    %g2_1 = arith.addi %s23, %add2_1 : i32
    %far2_2, %ok2_2 = gpu.shuffle up %g2_1, %i2, %i32 : i32
    %add2_2 = arith.select %takes2, %far2_2, %i0 : i32
    %g2_2 = arith.addi %g2_1, %add2_2 : i32
    %far2_4, %ok2_4 = gpu.shuffle up %g2_2, %i4, %i32 : i32
    %add2_4 = arith.select %takes4, %far2_4, %i0 : i32
    %g2_4 = arith.addi %g2_2, %add2_4 : i32
    %far2_8, %ok2_8 = gpu.shuffle up %g2_4, %i8, %i32 : i32
    %add2_8 = arith.select %takes8, %far2_8, %i0 : i32
    %g2_8 = arith.addi %g2_4, %add2_8 : i32
    %far2_16, %ok2_16 = gpu.shuffle up %g2_8, %i16, %i32 : i32
    %add2_16 = arith.select %takes16, %far2_16, %i0 : i32
    %g2_16 = arith.addi %g2_8, %add2_16 : i32
    %before2 = arith.subi %g2_16, %s23 : i32
    %far3_1, %ok3_1 = gpu.shuffle up %s33, %i1, %i32 : i32
    %add3_1 = arith.select %takes1, %far3_1, %i0 : i32
    %g3_1 = arith.addi %s33, %add3_1 : i32
    %far3_2, %ok3_2 = gpu.shuffle up %g3_1, %i2, %i32 : i32
    %add3_2 = arith.select %takes2, %far3_2, %i0 : i32
    %g3_2 = arith.addi %g3_1, %add3_2 : i32
    %far3_4, %ok3_4 = gpu.shuffle up %g3_2, %i4, %i32 : i32
    %add3_4 = arith.select %takes4, %far3_4, %i0 : i32
    %g3_4 = arith.addi %g3_2, %add3_4 : i32
    %far3_8, %ok3_8 = gpu.shuffle up %g3_4, %i8, %i32 : i32
    %add3_8 = arith.select %takes8, %far3_8, %i0 : i32
    %g3_8 = arith.addi %g3_4, %add3_8 : i32
    %far3_16, %ok3_16 = gpu.shuffle up %g3_8, %i16, %i32 : i32
    %add3_16 = arith.select %takes16, %far3_16, %i0 : i32
    %g3_16 = arith.addi %g3_8, %add3_16 : i32
    %before3 = arith.subi %g3_16, %s33 : i32

    // The sums of the groups: 8 for each of the four vectors, in the order of the elements.
    %is_last = arith.cmpi eq, %lane, %c31 : index
    scf.if %is_last {
      memref.store %g0_16, %parts[%group] : !parts
      %p1 = arith.addi %group, %c8 : index
      memref.store %g1_16, %parts[%p1] : !parts
      %p2 = arith.addi %p1, %c8 : index
      memref.store %g2_16, %parts[%p2] : !parts
      %p3 = arith.addi %p2, %c8 : index
      memref.store %g3_16, %parts[%p3] : !parts
    }
    gpu.barrier
    %looks = arith.cmpi ult, %t, %c32 : index
    scf.if %looks {
      %part = memref.load %parts[%lane] : !parts
      %far1, %ok1 = gpu.shuffle up %part, %i1, %i32 : i32
      %add1 = arith.select %takes1, %far1, %i0 : i32
      %sum1 = arith.addi %part, %add1 : i32
      %far2, %ok2 = gpu.shuffle up %sum1, %i2, %i32 : i32
      %add2 = arith.select %takes2, %far2, %i0 : i32
      %sum2 = arith.addi %sum1, %add2 : i32
      %far4, %ok4 = gpu.shuffle up %sum2, %i4, %i32 : i32
      %add4 = arith.select %takes4, %far4, %i0 : i32
      %sum4 = arith.addi %sum2, %add4 : i32
      %far8, %ok8 = gpu.shuffle up %sum4, %i8, %i32 : i32
      %add8 = arith.select %takes8, %far8, %i0 : i32
      %sum8 = arith.addi %sum4, %add8 : i32
      %far16, %ok16 = gpu.shuffle up %sum8, %i16, %i32 : i32
      %add16 = arith.select %takes16, %far16, %i0 : i32
      %sum16 = arith.addi %sum8, %add16 : i32
      %group_before = arith.subi %sum16, %part : i32
      memref.store %group_before, %parts[%lane] : !parts
      %run_sum, %ok = gpu.shuffle idx %sum16, %i31, %i32 : i32

      %is_first = arith.cmpi eq, %run, %c0 : index
      %known = arith.select %is_first, %has_all, %has_sum : i32
      %run_word = arith.index_cast %run : index to i64
      %run_at = arith.muli %run_word, %l8 : i64
      %run_after = arith.addi %run_at, %l8 : i64
      %own_address = arith.addi %counter_word, %run_after : i64
      %own = llvm.inttoptr %own_address : i64 to !llvm.ptr
      scf.if %lead {
        %upper = arith.extui %known : i32 to i64
        %lower = arith.extui %run_sum : i32 to i64
        %up = arith.shli %upper, %l32 : i64
        %word = arith.ori %up, %lower : i64
        llvm.store %word, %own atomic monotonic {alignment = 8 : i64} : i64, !llvm.ptr
      }

      // `past` is one past the last run that is looked at; lane 0 has the last one. Before run 0 there is nothing.
      %more = arith.xori %is_first, %yes : i1
      %end:3 = scf.while (%on = %more, %past = %run, %sum = %i0) : (i1, index, i32) -> (i1, index, i32) {
        scf.condition(%on) %on, %past, %sum : i1, index, i32
      } do {
      ^bb0(%on: i1, %past: index, %sum: i32):
        %there = arith.cmpi ult, %lane, %past : index
        %down = arith.subi %past, %lane : index
        %place = arith.select %there, %down, %c1 : index
        %place_word = arith.index_cast %place : index to i64
        %place_at = arith.muli %place_word, %l8 : i64
        %address = arith.addi %counter_word, %place_at : i64
        %q = llvm.inttoptr %address : i64 to !llvm.ptr
        // Each lane waits until its run has said something.
        %seen:2 = scf.while : () -> (i32, i32) {
          %w = llvm.load %q atomic monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
          %high = arith.shrui %w, %l32 : i64
          %state = arith.trunci %high : i64 to i32
          %value = arith.trunci %w : i64 to i32
          %since = arith.subi %state, %has_sum : i32
          %unknown = arith.cmpi ugt, %since, %i1 : i32
          %again = arith.andi %unknown, %there : i1
          scf.condition(%again) %state, %value : i32, i32
        } do {
        ^bb0(%state: i32, %value: i32):
          scf.yield
        }
        // The nearest run that is known up to its end; a lane before run 0 stands for one with the sum 0.
        %whole = arith.cmpi eq, %seen#0, %has_all : i32
        %outside = arith.xori %there, %yes : i1
        %ends = arith.ori %whole, %outside : i1
        %end_lane = arith.select %ends, %lane_word, %i32 : i32
        %nearest_far16, %nearest_ok16 = gpu.shuffle xor %end_lane, %i16, %i32 : i32
        %nearest16 = arith.minui %end_lane, %nearest_far16 : i32
        %nearest_far8, %nearest_ok8 = gpu.shuffle xor %nearest16, %i8, %i32 : i32
        %nearest8 = arith.minui %nearest16, %nearest_far8 : i32
        %nearest_far4, %nearest_ok4 = gpu.shuffle xor %nearest8, %i4, %i32 : i32
        %nearest4 = arith.minui %nearest8, %nearest_far4 : i32
        %nearest_far2, %nearest_ok2 = gpu.shuffle xor %nearest4, %i2, %i32 : i32
        %nearest2 = arith.minui %nearest4, %nearest_far2 : i32
        %nearest_far1, %nearest_ok1 = gpu.shuffle xor %nearest2, %i1, %i32 : i32
        %nearest = arith.minui %nearest2, %nearest_far1 : i32
        %up_to = arith.cmpi ule, %lane_word, %nearest : i32
        %counts = arith.andi %up_to, %there : i1
        %mine = arith.select %counts, %seen#1, %i0 : i32
        %window_far16, %window_ok16 = gpu.shuffle xor %mine, %i16, %i32 : i32
        %window16 = arith.addi %mine, %window_far16 : i32
        %window_far8, %window_ok8 = gpu.shuffle xor %window16, %i8, %i32 : i32
        %window8 = arith.addi %window16, %window_far8 : i32
        %window_far4, %window_ok4 = gpu.shuffle xor %window8, %i4, %i32 : i32
        %window4 = arith.addi %window8, %window_far4 : i32
        %window_far2, %window_ok2 = gpu.shuffle xor %window4, %i2, %i32 : i32
        %window2 = arith.addi %window4, %window_far2 : i32
        %window_far1, %window_ok1 = gpu.shuffle xor %window2, %i1, %i32 : i32
        %window = arith.addi %window2, %window_far1 : i32
        %next = arith.addi %sum, %window : i32
        %on_again = arith.cmpi eq, %nearest, %i32 : i32
        %earlier = arith.subi %past, %c32 : index
        scf.yield %on_again, %earlier, %next : i1, index, i32
      }
      scf.if %lead {
        scf.if %more {
          %all = arith.addi %end#2, %run_sum : i32
          %upper = arith.extui %has_all : i32 to i64
          %lower = arith.extui %all : i32 to i64
          %up = arith.shli %upper, %l32 : i64
          %word = arith.ori %up, %lower : i64
          llvm.store %word, %own atomic monotonic {alignment = 8 : i64} : i64, !llvm.ptr
        }
        %before_word = arith.extui %end#2 : i32 to i64
        memref.store %before_word, %words[%c1] : !words
      }
    }
    gpu.barrier
    %of_runs_word = memref.load %words[%c1] : !words
    %of_runs = arith.trunci %of_runs_word : i64 to i32
    %part0 = memref.load %parts[%group] : !parts
    %b0 = arith.addi %of_runs, %part0 : i32
    %from0 = arith.addi %b0, %before0 : i32
    %r00 = arith.addi %from0, %e00 : i32
    %r01 = arith.addi %from0, %s01 : i32
    %r02 = arith.addi %from0, %s02 : i32
    %r03 = arith.addi %from0, %s03 : i32
    %o0 = vector.from_elements %r00, %r01, %r02, %r03 : vector<4xi32>
    scf.if %in0 {
      vector.store %o0, %out[%first] {alignment = 16 : i64} : memref<?xi32>, vector<4xi32>
    }
    %w1 = arith.addi %group, %c8 : index
    %part1 = memref.load %parts[%w1] : !parts
    %b1 = arith.addi %of_runs, %part1 : i32
    %from1 = arith.addi %b1, %before1 : i32
    %r10 = arith.addi %from1, %e10 : i32
    %r11 = arith.addi %from1, %s11 : i32
    %r12 = arith.addi %from1, %s12 : i32
    %r13 = arith.addi %from1, %s13 : i32
    %o1 = vector.from_elements %r10, %r11, %r12, %r13 : vector<4xi32>
    scf.if %in1 {
      vector.store %o1, %out[%at1] {alignment = 16 : i64} : memref<?xi32>, vector<4xi32>
    }
    %w2 = arith.addi %w1, %c8 : index
    %part2 = memref.load %parts[%w2] : !parts
    %b2 = arith.addi %of_runs, %part2 : i32
    %from2 = arith.addi %b2, %before2 : i32
    %r20 = arith.addi %from2, %e20 : i32
    %r21 = arith.addi %from2, %s21 : i32
    %r22 = arith.addi %from2, %s22 : i32
    %r23 = arith.addi %from2, %s23 : i32
    %o2 = vector.from_elements %r20, %r21, %r22, %r23 : vector<4xi32>
    scf.if %in2 {
      vector.store %o2, %out[%at2] {alignment = 16 : i64} : memref<?xi32>, vector<4xi32>
    }
    %w3 = arith.addi %w2, %c8 : index
    %part3 = memref.load %parts[%w3] : !parts
    %b3 = arith.addi %of_runs, %part3 : i32
    %from3 = arith.addi %b3, %before3 : i32
    %r30 = arith.addi %from3, %e30 : i32
    %r31 = arith.addi %from3, %s31 : i32
    %r32 = arith.addi %from3, %s32 : i32
    %r33 = arith.addi %from3, %s33 : i32
    %o3 = vector.from_elements %r30, %r31, %r32, %r33 : vector<4xi32>
    scf.if %in3 {
      vector.store %o3, %out[%at3] {alignment = 16 : i64} : memref<?xi32>, vector<4xi32>
    }
    gpu.return
  }
}
