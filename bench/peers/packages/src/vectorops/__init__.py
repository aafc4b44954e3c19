"""Operations on vectors, on the CPU: see `vectorops.kernels`."""

from vectorops import kernels

__all__ = ["kernels"]
