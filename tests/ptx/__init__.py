"""PTX executed on the CPU, for tests: what LLVM writes for NVIDIA's chips, instruction by instruction.

After NVIDIA's *Parallel Thread Execution ISA* (https://docs.nvidia.com/cuda/parallel-thread-execution/). What hardware
forbids, as accesses outside of allocations or addresses that are not aligned, is an error that names the instruction.
"""
