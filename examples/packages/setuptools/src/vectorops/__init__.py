"""Operations on vectors, on whatever device is there: see `vectorops.kernels`.

``from vectorops.kernels import saxpy`` here would load the library whenever the package is imported."""

from vectorops import kernels

__all__ = ["kernels"]
