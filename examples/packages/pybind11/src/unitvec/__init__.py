"""Vectors of length one."""

from unitvec._unitvec import normalized

__all__ = ["normalized"]
