"""Functions of the rows of a matrix."""

from rowwise.kernels import softmax

__all__ = ["softmax"]
