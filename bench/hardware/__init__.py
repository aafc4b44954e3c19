"""What bench/hardware.py measures on a GPU: launches, kernels and products of matrices, beside other packages."""
