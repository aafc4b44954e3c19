  // Before each theme's kernels: the thread's number in its block, how many there are, and its number in the
  // grid, x fastest.
  func.func private @thread() -> index {
    %x = gpu.thread_id x
    %y = gpu.thread_id y
    %z = gpu.thread_id z
    %dx = gpu.block_dim x
    %dy = gpu.block_dim y
    %0 = arith.muli %z, %dy : index
    %1 = arith.addi %0, %y : index
    %2 = arith.muli %1, %dx : index
    %3 = arith.addi %2, %x : index
    return %3 : index
  }
  func.func private @threads() -> index {
    %x = gpu.block_dim x
    %y = gpu.block_dim y
    %z = gpu.block_dim z
    %0 = arith.muli %x, %y : index
    %1 = arith.muli %0, %z : index
    return %1 : index
  }
  func.func private @block() -> index {
    %x = gpu.block_id x
    %y = gpu.block_id y
    %z = gpu.block_id z
    %dx = gpu.grid_dim x
    %dy = gpu.grid_dim y
    %0 = arith.muli %z, %dy : index
    %1 = arith.addi %0, %y : index
    %2 = arith.muli %1, %dx : index
    %3 = arith.addi %2, %x : index
    return %3 : index
  }
  func.func private @at() -> index {
    %thread = func.call @thread() : () -> index
    %threads = func.call @threads() : () -> index
    %block = func.call @block() : () -> index
    %0 = arith.muli %block, %threads : index
    %1 = arith.addi %0, %thread : index
    return %1 : index
  }
