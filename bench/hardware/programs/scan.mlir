// out[i] = x[0] + ... + x[i] in one launch that reads and writes each element once (Merrill and Garland, "Single-pass
// Parallel Prefix Scan with Decoupled Look-back", 2016), for lengths that are multiples of 4. A block of 256 threads
// scans a run of 8192 elements, says its sum, and looks back over the runs before its own: 64 at a time, until one is
// known up to its end. Meanwhile its elements wait in workgroup memory and not in registers, so that more blocks
// fit a multiprocessor: on an H200 the speed grew with the elements that are there at a time.
//
// `states` begins with zeros and serves launches of one length, one after the other. Its first word counts the blocks
// that have begun: they take their runs from it, so that a run's predecessors are always under way, and a launch knows
// how many there were before it. A run's word holds what is known in the upper half (2 launch + 1: its sum; 2 launch +
// 2: the sum of all up to its end) and that sum in the lower one. Both come with one access, so the accesses need no
// order beyond that of each word, and what earlier launches left counts as unknown.
#shared = #gpu.address_space<workgroup>
!parts = memref<64xi32, #shared>
!stash = memref<8192xi32, #shared>
!words = memref<3xi32, #shared>
!run = vector<4xi32>
gpu.module @kernels {
  gpu.func @scan(%x: memref<?xi32>, %out: memref<?xi32>, %states: memref<?xi64>)
      workgroup(%parts: !parts, %words: !words, %stash: !stash) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 5 : i32} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c31 = arith.constant 31 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c1024 = arith.constant 1024 : index
    %c8191 = arith.constant 8191 : index
    %c8192 = arith.constant 8192 : index
    %yes = arith.constant true
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i2 = arith.constant 2 : i32
    %i31 = arith.constant 31 : i32
    %i32 = arith.constant 32 : i32
    %l1 = arith.constant 1 : i64
    %t = gpu.thread_id x
    %lane = arith.remui %t, %c32 : index
    %group = arith.divui %t, %c32 : index
    %n = memref.dim %x, %c0 : memref<?xi32>
    %lead = arith.cmpi eq, %t, %c0 : index
    scf.if %lead {
      %counter = func.call @word_of(%states, %c0) : (memref<?xi64>, index) -> !llvm.ptr
      %begun = llvm.atomicrmw add %counter, %l1 syncscope("device") monotonic : !llvm.ptr, i64
      %ticket = arith.index_cast %begun : i64 to index
      %longer = arith.addi %n, %c8191 : index
      %runs = arith.divui %longer, %c8192 : index
      %launch = arith.divui %ticket, %runs : index
      %tickets_before = arith.muli %launch, %runs : index
      %own_run = arith.subi %ticket, %tickets_before : index
      %own_run_word = arith.index_cast %own_run : index to i32
      memref.store %own_run_word, %words[%c0] : !words
      %launch_word = arith.index_cast %launch : index to i32
      memref.store %launch_word, %words[%c1] : !words
    }
    gpu.barrier
    %run_word = memref.load %words[%c0] : !words
    %run = arith.index_castui %run_word : i32 to index
    %launch = memref.load %words[%c1] : !words
    %twice = arith.muli %launch, %i2 : i32
    %has_sum = arith.addi %twice, %i1 : i32
    %has_all = arith.addi %twice, %i2 : i32

    // Eight vectors of a thread, each next to its neighbours': the sums up to each element of the vector (s), and up to
    // each thread of a group of 32 (g).
    %start = arith.muli %run, %c8192 : index
    %own_place = arith.muli %t, %c4 : index
    %at0 = arith.addi %start, %own_place : index
    %at1 = arith.addi %at0, %c1024 : index
    %at2 = arith.addi %at1, %c1024 : index
    %at3 = arith.addi %at2, %c1024 : index
    %at4 = arith.addi %at3, %c1024 : index
    %at5 = arith.addi %at4, %c1024 : index
    %at6 = arith.addi %at5, %c1024 : index
    %at7 = arith.addi %at6, %c1024 : index
    %v0 = func.call @run_at(%x, %at0) : (memref<?xi32>, index) -> !run
    %v1 = func.call @run_at(%x, %at1) : (memref<?xi32>, index) -> !run
    %v2 = func.call @run_at(%x, %at2) : (memref<?xi32>, index) -> !run
    %v3 = func.call @run_at(%x, %at3) : (memref<?xi32>, index) -> !run
    %v4 = func.call @run_at(%x, %at4) : (memref<?xi32>, index) -> !run
    %v5 = func.call @run_at(%x, %at5) : (memref<?xi32>, index) -> !run
    %v6 = func.call @run_at(%x, %at6) : (memref<?xi32>, index) -> !run
    %v7 = func.call @run_at(%x, %at7) : (memref<?xi32>, index) -> !run
    // All are asked for before one is needed: ptxas would have four of them wait for registers.
    gpu.barrier
    %s0 = func.call @sums(%v0) : (!run) -> !run
    %s1 = func.call @sums(%v1) : (!run) -> !run
    %s2 = func.call @sums(%v2) : (!run) -> !run
    %s3 = func.call @sums(%v3) : (!run) -> !run
    %s4 = func.call @sums(%v4) : (!run) -> !run
    %s5 = func.call @sums(%v5) : (!run) -> !run
    %s6 = func.call @sums(%v6) : (!run) -> !run
    %s7 = func.call @sums(%v7) : (!run) -> !run
    %all0 = vector.extract %s0[3] : i32 from !run
    %all1 = vector.extract %s1[3] : i32 from !run
    %all2 = vector.extract %s2[3] : i32 from !run
    %all3 = vector.extract %s3[3] : i32 from !run
    %all4 = vector.extract %s4[3] : i32 from !run
    %all5 = vector.extract %s5[3] : i32 from !run
    %all6 = vector.extract %s6[3] : i32 from !run
    %all7 = vector.extract %s7[3] : i32 from !run
    %g0 = func.call @over_group(%all0, %lane) : (i32, index) -> i32
    %g1 = func.call @over_group(%all1, %lane) : (i32, index) -> i32
    %g2 = func.call @over_group(%all2, %lane) : (i32, index) -> i32
    %g3 = func.call @over_group(%all3, %lane) : (i32, index) -> i32
    %g4 = func.call @over_group(%all4, %lane) : (i32, index) -> i32
    %g5 = func.call @over_group(%all5, %lane) : (i32, index) -> i32
    %g6 = func.call @over_group(%all6, %lane) : (i32, index) -> i32
    %g7 = func.call @over_group(%all7, %lane) : (i32, index) -> i32
    %slot0 = arith.addi %own_place, %c0 : index
    %slot1 = arith.addi %slot0, %c1024 : index
    %slot2 = arith.addi %slot1, %c1024 : index
    %slot3 = arith.addi %slot2, %c1024 : index
    %slot4 = arith.addi %slot3, %c1024 : index
    %slot5 = arith.addi %slot4, %c1024 : index
    %slot6 = arith.addi %slot5, %c1024 : index
    %slot7 = arith.addi %slot6, %c1024 : index
    func.call @keep(%s0, %g0, %stash, %slot0) : (!run, i32, !stash, index) -> ()
    func.call @keep(%s1, %g1, %stash, %slot1) : (!run, i32, !stash, index) -> ()
    func.call @keep(%s2, %g2, %stash, %slot2) : (!run, i32, !stash, index) -> ()
    func.call @keep(%s3, %g3, %stash, %slot3) : (!run, i32, !stash, index) -> ()
    func.call @keep(%s4, %g4, %stash, %slot4) : (!run, i32, !stash, index) -> ()
    func.call @keep(%s5, %g5, %stash, %slot5) : (!run, i32, !stash, index) -> ()
    func.call @keep(%s6, %g6, %stash, %slot6) : (!run, i32, !stash, index) -> ()
    func.call @keep(%s7, %g7, %stash, %slot7) : (!run, i32, !stash, index) -> ()

    // The sums of the groups: 8 for each of the eight vectors, in the order of the elements.
    %p0 = arith.addi %group, %c0 : index
    %p1 = arith.addi %p0, %c8 : index
    %p2 = arith.addi %p1, %c8 : index
    %p3 = arith.addi %p2, %c8 : index
    %p4 = arith.addi %p3, %c8 : index
    %p5 = arith.addi %p4, %c8 : index
    %p6 = arith.addi %p5, %c8 : index
    %p7 = arith.addi %p6, %c8 : index
    %is_last = arith.cmpi eq, %lane, %c31 : index
    scf.if %is_last {
      memref.store %g0, %parts[%p0] : !parts
      memref.store %g1, %parts[%p1] : !parts
      memref.store %g2, %parts[%p2] : !parts
      memref.store %g3, %parts[%p3] : !parts
      memref.store %g4, %parts[%p4] : !parts
      memref.store %g5, %parts[%p5] : !parts
      memref.store %g6, %parts[%p6] : !parts
      memref.store %g7, %parts[%p7] : !parts
    }
    gpu.barrier
    %looks = arith.cmpi ult, %t, %c32 : index
    scf.if %looks {
      %pair = arith.muli %lane, %c2 : index
      %pair1 = arith.addi %pair, %c1 : index
      %part_a = memref.load %parts[%pair] : !parts
      %part_b = memref.load %parts[%pair1] : !parts
      %part = arith.addi %part_a, %part_b : i32
      %up_to = func.call @over_group(%part, %lane) : (i32, index) -> i32
      %before_a = arith.subi %up_to, %part : i32
      %before_b = arith.addi %before_a, %part_a : i32
      memref.store %before_a, %parts[%pair] : !parts
      memref.store %before_b, %parts[%pair1] : !parts
      %run_sum, %ok = gpu.shuffle idx %up_to, %i31, %i32 : i32

      %is_first = arith.cmpi eq, %run, %c0 : index
      %own_number = arith.addi %run, %c1 : index
      %own = func.call @word_of(%states, %own_number) : (memref<?xi64>, index) -> !llvm.ptr
      scf.if %lead {
        %known = arith.select %is_first, %has_all, %has_sum : i32
        func.call @say(%own, %known, %run_sum) : (!llvm.ptr, i32, i32) -> ()
      }

      // `past` is one past the last run that is looked at. Each lane looks at two, lane 0 at the last ones; before run
      // 0 there is nothing.
      %more = arith.xori %is_first, %yes : i1
      %lane_word = arith.index_cast %lane : index to i32
      %far0 = arith.muli %lane, %c2 : index
      %far1 = arith.addi %far0, %c1 : index
      %end:3 = scf.while (%on = %more, %past = %run, %sum = %i0) : (i1, index, i32) -> (i1, index, i32) {
        scf.condition(%on) %on, %past, %sum : i1, index, i32
      } do {
      ^bb0(%on: i1, %past: index, %sum: i32):
        %there0 = arith.cmpi ult, %far0, %past : index
        %down0 = arith.subi %past, %far0 : index
        %place0 = arith.select %there0, %down0, %c1 : index
        %q0 = func.call @word_of(%states, %place0) : (memref<?xi64>, index) -> !llvm.ptr
        %there1 = arith.cmpi ult, %far1, %past : index
        %down1 = arith.subi %past, %far1 : index
        %place1 = arith.select %there1, %down1, %c1 : index
        %q1 = func.call @word_of(%states, %place1) : (memref<?xi64>, index) -> !llvm.ptr
        // Each lane waits until its runs have said something.
        %seen:4 = scf.while : () -> (i32, i32, i32, i32) {
          %w0 = llvm.load %q0 atomic syncscope("device") monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
          %w1 = llvm.load %q1 atomic syncscope("device") monotonic {alignment = 8 : i64} : !llvm.ptr -> i64
          %state0, %value0, %known0 = func.call @read(%w0, %has_sum) : (i64, i32) -> (i32, i32, i1)
          %state1, %value1, %known1 = func.call @read(%w1, %has_sum) : (i64, i32) -> (i32, i32, i1)
          %unknown0 = arith.cmpi ult, %known0, %there0 : i1
          %unknown1 = arith.cmpi ult, %known1, %there1 : i1
          %again1 = arith.ori %unknown0, %unknown1 : i1
          scf.condition(%again1) %state0, %value0, %state1, %value1 : i32, i32, i32, i32
        } do {
        ^bb0(%state0: i32, %value0: i32, %state1: i32, %value1: i32):
          scf.yield
        }
        // The nearest run that is known up to its end; what is before run 0 stands for one with the sum 0.
        %whole0 = arith.cmpi eq, %seen#0, %has_all : i32
        %outside0 = arith.xori %there0, %yes : i1
        %ends0 = arith.ori %whole0, %outside0 : i1
        %value0 = arith.select %there0, %seen#1, %i0 : i32
        %whole1 = arith.cmpi eq, %seen#2, %has_all : i32
        %outside1 = arith.xori %there1, %yes : i1
        %ends1 = arith.ori %whole1, %outside1 : i1
        %value1 = arith.select %there1, %seen#3, %i0 : i32
        %further0 = arith.select %ends0, %i0, %value1 : i32
        %mine0 = arith.addi %value0, %further0 : i32
        %ends_by1 = arith.ori %ends0, %ends1 : i1
        %end_lane = arith.select %ends_by1, %lane_word, %i32 : i32
        %nearest = gpu.subgroup_reduce minsi %end_lane uniform cluster(size = 32) : (i32) -> i32
        %counts = arith.cmpi ule, %lane_word, %nearest : i32
        %counted = arith.select %counts, %mine0, %i0 : i32
        %window = gpu.subgroup_reduce add %counted uniform cluster(size = 32) : (i32) -> i32
        %next = arith.addi %sum, %window : i32
        %on_again = arith.cmpi eq, %nearest, %i32 : i32
        %earlier = arith.subi %past, %c64 : index
        scf.yield %on_again, %earlier, %next : i1, index, i32
      }
      scf.if %lead {
        scf.if %more {
          %all = arith.addi %end#2, %run_sum : i32
          func.call @say(%own, %has_all, %all) : (!llvm.ptr, i32, i32) -> ()
        }
        memref.store %end#2, %words[%c2] : !words
      }
    }
    gpu.barrier
    %of_runs = memref.load %words[%c2] : !words
    %part0 = memref.load %parts[%p0] : !parts
    %from0 = arith.addi %of_runs, %part0 : i32
    %kept0 = vector.load %stash[%slot0] {alignment = 16 : i64} : !stash, !run
    func.call @put(%out, %at0, %kept0, %from0) : (memref<?xi32>, index, !run, i32) -> ()
    %part1 = memref.load %parts[%p1] : !parts
    %from1 = arith.addi %of_runs, %part1 : i32
    %kept1 = vector.load %stash[%slot1] {alignment = 16 : i64} : !stash, !run
    func.call @put(%out, %at1, %kept1, %from1) : (memref<?xi32>, index, !run, i32) -> ()
    %part2 = memref.load %parts[%p2] : !parts
    %from2 = arith.addi %of_runs, %part2 : i32
    %kept2 = vector.load %stash[%slot2] {alignment = 16 : i64} : !stash, !run
    func.call @put(%out, %at2, %kept2, %from2) : (memref<?xi32>, index, !run, i32) -> ()
    %part3 = memref.load %parts[%p3] : !parts
    %from3 = arith.addi %of_runs, %part3 : i32
    %kept3 = vector.load %stash[%slot3] {alignment = 16 : i64} : !stash, !run
    func.call @put(%out, %at3, %kept3, %from3) : (memref<?xi32>, index, !run, i32) -> ()
    %part4 = memref.load %parts[%p4] : !parts
    %from4 = arith.addi %of_runs, %part4 : i32
    %kept4 = vector.load %stash[%slot4] {alignment = 16 : i64} : !stash, !run
    func.call @put(%out, %at4, %kept4, %from4) : (memref<?xi32>, index, !run, i32) -> ()
    %part5 = memref.load %parts[%p5] : !parts
    %from5 = arith.addi %of_runs, %part5 : i32
    %kept5 = vector.load %stash[%slot5] {alignment = 16 : i64} : !stash, !run
    func.call @put(%out, %at5, %kept5, %from5) : (memref<?xi32>, index, !run, i32) -> ()
    %part6 = memref.load %parts[%p6] : !parts
    %from6 = arith.addi %of_runs, %part6 : i32
    %kept6 = vector.load %stash[%slot6] {alignment = 16 : i64} : !stash, !run
    func.call @put(%out, %at6, %kept6, %from6) : (memref<?xi32>, index, !run, i32) -> ()
    %part7 = memref.load %parts[%p7] : !parts
    %from7 = arith.addi %of_runs, %part7 : i32
    %kept7 = vector.load %stash[%slot7] {alignment = 16 : i64} : !stash, !run
    func.call @put(%out, %at7, %kept7, %from7) : (memref<?xi32>, index, !run, i32) -> ()
    gpu.return
  }
  func.func private @run_at(%x: memref<?xi32>, %at: index) -> !run {
    %c0 = arith.constant 0 : index
    %zeros = arith.constant dense<0> : !run
    %n = memref.dim %x, %c0 : memref<?xi32>
    %inside = arith.cmpi ult, %at, %n : index
    %run = scf.if %inside -> !run {
      %v = vector.load %x[%at] {alignment = 16 : i64} : memref<?xi32>, !run
      scf.yield %v : !run
    } else {
      scf.yield %zeros : !run
    }
    return %run : !run
  }
  func.func private @put(%out: memref<?xi32>, %at: index, %sums: !run, %before: i32) {
    %c0 = arith.constant 0 : index
    %n = memref.dim %out, %c0 : memref<?xi32>
    %inside = arith.cmpi ult, %at, %n : index
    scf.if %inside {
      %all = vector.broadcast %before : i32 to !run
      %run = arith.addi %sums, %all : !run
      vector.store %run, %out[%at] {alignment = 16 : i64} : memref<?xi32>, !run
    }
    return
  }
  // The sums up to each element.
  func.func private @sums(%run: !run) -> !run {
    %e0 = vector.extract %run[0] : i32 from !run
    %e1 = vector.extract %run[1] : i32 from !run
    %e2 = vector.extract %run[2] : i32 from !run
    %e3 = vector.extract %run[3] : i32 from !run
    %s1 = arith.addi %e0, %e1 : i32
    %s2 = arith.addi %s1, %e2 : i32
    %s3 = arith.addi %s2, %e3 : i32
    %sums = vector.from_elements %e0, %s1, %s2, %s3 : !run
    return %sums : !run
  }
  func.func private @keep(%sums: !run, %up_to: i32, %stash: !stash, %at: index) {
    %own = vector.extract %sums[3] : i32 from !run
    %before = arith.subi %up_to, %own : i32
    %all = vector.broadcast %before : i32 to !run
    %in_group = arith.addi %sums, %all : !run
    vector.store %in_group, %stash[%at] {alignment = 16 : i64} : !stash, !run
    return
  }
  // The sums up to each of 32 lanes.
  func.func private @over_group(%value: i32, %lane: index) -> i32 {
    %zero = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i2 = arith.constant 2 : i32
    %i4 = arith.constant 4 : i32
    %i8 = arith.constant 8 : i32
    %i16 = arith.constant 16 : i32
    %all = arith.constant 32 : i32
    %lane_word = arith.index_cast %lane : index to i32
    %far1, %ok1 = gpu.shuffle up %value, %i1, %all : i32
    %takes1 = arith.cmpi uge, %lane_word, %i1 : i32
    %add1 = arith.select %takes1, %far1, %zero : i32
    %sum1 = arith.addi %value, %add1 : i32
    %far2, %ok2 = gpu.shuffle up %sum1, %i2, %all : i32
    %takes2 = arith.cmpi uge, %lane_word, %i2 : i32
    %add2 = arith.select %takes2, %far2, %zero : i32
    %sum2 = arith.addi %sum1, %add2 : i32
    %far4, %ok4 = gpu.shuffle up %sum2, %i4, %all : i32
    %takes4 = arith.cmpi uge, %lane_word, %i4 : i32
    %add4 = arith.select %takes4, %far4, %zero : i32
    %sum4 = arith.addi %sum2, %add4 : i32
    %far8, %ok8 = gpu.shuffle up %sum4, %i8, %all : i32
    %takes8 = arith.cmpi uge, %lane_word, %i8 : i32
    %add8 = arith.select %takes8, %far8, %zero : i32
    %sum8 = arith.addi %sum4, %add8 : i32
    %far16, %ok16 = gpu.shuffle up %sum8, %i16, %all : i32
    %takes16 = arith.cmpi uge, %lane_word, %i16 : i32
    %add16 = arith.select %takes16, %far16, %zero : i32
    %sum16 = arith.addi %sum8, %add16 : i32
    return %sum16 : i32
  }
  func.func private @word_of(%states: memref<?xi64>, %number: index) -> !llvm.ptr {
    %c8 = arith.constant 8 : index
    %base = memref.extract_aligned_pointer_as_index %states : memref<?xi64> -> index
    %offset = arith.muli %number, %c8 : index
    %address = arith.addi %base, %offset : index
    %word = arith.index_cast %address : index to i64
    %pointer = llvm.inttoptr %word : i64 to !llvm.ptr
    return %pointer : !llvm.ptr
  }
  func.func private @say(%word: !llvm.ptr, %known: i32, %sum: i32) {
    %l32 = arith.constant 32 : i64
    %upper = arith.extui %known : i32 to i64
    %lower = arith.extui %sum : i32 to i64
    %up = arith.shli %upper, %l32 : i64
    %both = arith.ori %up, %lower : i64
    llvm.store %both, %word atomic syncscope("device") monotonic {alignment = 8 : i64} : i64, !llvm.ptr
    return
  }
  // What a word says is known, its sum, and whether that is of this launch.
  func.func private @read(%word: i64, %has_sum: i32) -> (i32, i32, i1) {
    %one = arith.constant 1 : i32
    %l32 = arith.constant 32 : i64
    %upper = arith.shrui %word, %l32 : i64
    %state = arith.trunci %upper : i64 to i32
    %sum = arith.trunci %word : i64 to i32
    %since = arith.subi %state, %has_sum : i32
    %known = arith.cmpi ule, %since, %one : i32
    return %state, %sum, %known : i32, i32, i1
  }
}
