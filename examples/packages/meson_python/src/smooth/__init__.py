"""Smoothing of signals."""

from smooth.kernels import box

__all__ = ["box"]
