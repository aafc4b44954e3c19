"""Operations on vectors, on whatever device is there."""

from vectorops.kernels import saxpy, scale

__all__ = ["saxpy", "scale"]
