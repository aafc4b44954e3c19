"""Random host programs: asynchronous MLIR text with just enough dependencies, and what it computes."""
