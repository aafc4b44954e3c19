"""MLIR and LLVM 22 in this process: the extension module ``_native``, built from the C++ files beside this one."""
