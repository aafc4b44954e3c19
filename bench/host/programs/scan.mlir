// out[i] = x[0] + ... + x[i] in three launches: the sum of each run of 2048 elements; the running sums of these, by one
// block; and the elements of each run, from its start. A block scans its threads' sums in workgroup memory, each step
// adding what is twice as far away.
#shared = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @run_sums_kernel(%x: memref<?xi32>, %sums: memref<?xi32>)
        workgroup(%part: memref<256xi32, #shared>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c128 = arith.constant 128 : index
      %c256 = arith.constant 256 : index
      %c2048 = arith.constant 2048 : index
      %zero = arith.constant 0 : i32
      %n = memref.dim %x, %c0 : memref<?xi32>
      %block = gpu.block_id x
      %t = gpu.thread_id x
      %start = arith.muli %block, %c2048 : index
      %first = arith.addi %start, %t : index
      %past = arith.addi %start, %c2048 : index
      %end = arith.minui %past, %n : index
      %own = scf.for %i = %first to %end step %c256 iter_args(%acc = %zero) -> i32 {
        %v = memref.load %x[%i] : memref<?xi32>
        %next = arith.addi %acc, %v : i32
        scf.yield %next : i32
      }
      memref.store %own, %part[%t] : memref<256xi32, #shared>
      gpu.barrier
      scf.for %step = %c0 to %c8 step %c1 {
        %half = arith.shrui %c128, %step : index
        %takes_part = arith.cmpi ult, %t, %half : index
        scf.if %takes_part {
          %other = arith.addi %t, %half : index
          %p = memref.load %part[%t] : memref<256xi32, #shared>
          %q = memref.load %part[%other] : memref<256xi32, #shared>
          %r = arith.addi %p, %q : i32
          memref.store %r, %part[%t] : memref<256xi32, #shared>
        }
        gpu.barrier
      }
      %is_first = arith.cmpi eq, %t, %c0 : index
      scf.if %is_first {
        %sum = memref.load %part[%c0] : memref<256xi32, #shared>
        memref.store %sum, %sums[%block] : memref<?xi32>
      }
      gpu.return
    }

    gpu.func @scan_sums_kernel(%sums: memref<?xi32>)
        workgroup(%part: memref<256xi32, #shared>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c255 = arith.constant 255 : index
      %c256 = arith.constant 256 : index
      %zero = arith.constant 0 : i32
      %n = memref.dim %sums, %c0 : memref<?xi32>
      %t = gpu.thread_id x
      %total = scf.for %start = %c0 to %n step %c256 iter_args(%before = %zero) -> i32 {
        %i = arith.addi %start, %t : index
        %inside = arith.cmpi ult, %i, %n : index
        %own = scf.if %inside -> i32 {
          %v = memref.load %sums[%i] : memref<?xi32>
          scf.yield %v : i32
        } else {
          scf.yield %zero : i32
        }
        memref.store %own, %part[%t] : memref<256xi32, #shared>
        gpu.barrier
        scf.for %step = %c0 to %c8 step %c1 {
          %far = arith.shli %c1, %step : index
          %takes_part = arith.cmpi uge, %t, %far : index
          %add = scf.if %takes_part -> i32 {
            %other = arith.subi %t, %far : index
            %v = memref.load %part[%other] : memref<256xi32, #shared>
            scf.yield %v : i32
          } else {
            scf.yield %zero : i32
          }
          gpu.barrier
          %p = memref.load %part[%t] : memref<256xi32, #shared>
          %r = arith.addi %p, %add : i32
          memref.store %r, %part[%t] : memref<256xi32, #shared>
          gpu.barrier
        }
        scf.if %inside {
          %v = memref.load %part[%t] : memref<256xi32, #shared>
          %r = arith.addi %before, %v : i32
          memref.store %r, %sums[%i] : memref<?xi32>
        }
        %all = memref.load %part[%c255] : memref<256xi32, #shared>
        %next = arith.addi %before, %all : i32
        gpu.barrier
        scf.yield %next : i32
      }
      gpu.return
    }

    gpu.func @scan_runs_kernel(%x: memref<?xi32>, %sums: memref<?xi32>, %out: memref<?xi32>)
        workgroup(%part: memref<256xi32, #shared>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c2048 = arith.constant 2048 : index
      %zero = arith.constant 0 : i32
      %n = memref.dim %x, %c0 : memref<?xi32>
      %block = gpu.block_id x
      %t = gpu.thread_id x
      %start = arith.muli %block, %c2048 : index
      %skip = arith.muli %t, %c8 : index
      %first = arith.addi %start, %skip : index
      %past = arith.addi %first, %c8 : index
      %end = arith.minui %past, %n : index
      %own = scf.for %i = %first to %end step %c1 iter_args(%acc = %zero) -> i32 {
        %v = memref.load %x[%i] : memref<?xi32>
        %next = arith.addi %acc, %v : i32
        scf.yield %next : i32
      }
      memref.store %own, %part[%t] : memref<256xi32, #shared>
      gpu.barrier
      scf.for %step = %c0 to %c8 step %c1 {
        %far = arith.shli %c1, %step : index
        %takes_part = arith.cmpi uge, %t, %far : index
        %add = scf.if %takes_part -> i32 {
          %other = arith.subi %t, %far : index
          %v = memref.load %part[%other] : memref<256xi32, #shared>
          scf.yield %v : i32
        } else {
          scf.yield %zero : i32
        }
        gpu.barrier
        %p = memref.load %part[%t] : memref<256xi32, #shared>
        %r = arith.addi %p, %add : i32
        memref.store %r, %part[%t] : memref<256xi32, #shared>
        gpu.barrier
      }
      %has_before = arith.cmpi ugt, %block, %c0 : index
      %of_runs = scf.if %has_before -> i32 {
        %run = arith.subi %block, %c1 : index
        %v = memref.load %sums[%run] : memref<?xi32>
        scf.yield %v : i32
      } else {
        scf.yield %zero : i32
      }
      %up_to_here = memref.load %part[%t] : memref<256xi32, #shared>
      %of_threads = arith.subi %up_to_here, %own : i32
      %before = arith.addi %of_runs, %of_threads : i32
      %total = scf.for %i = %first to %end step %c1 iter_args(%acc = %before) -> i32 {
        %v = memref.load %x[%i] : memref<?xi32>
        %next = arith.addi %acc, %v : i32
        memref.store %next, %out[%i] : memref<?xi32>
        scf.yield %next : i32
      }
      gpu.return
    }
  }

  func.func @scan(%x: memref<?xi32>, %out: memref<?xi32>, %sums: memref<?xi32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %runs = memref.dim %sums, %c0 : memref<?xi32>
    gpu.launch_func @kernels::@run_sums_kernel blocks in (%runs, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%x : memref<?xi32>, %sums : memref<?xi32>)
    gpu.launch_func @kernels::@scan_sums_kernel blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%sums : memref<?xi32>)
    gpu.launch_func @kernels::@scan_runs_kernel blocks in (%runs, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%x : memref<?xi32>, %sums : memref<?xi32>, %out : memref<?xi32>)
    return
  }
}
