"""The compiler: MLIR sources and targets in, one shared library out. Needs LLVM; imported when first used."""
