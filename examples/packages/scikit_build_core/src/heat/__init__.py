"""Heat in a rod."""

from heat.kernels import step

__all__ = ["step"]
