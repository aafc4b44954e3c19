"""Kernels inside of other packages: one adapter per build tool, over ``project.py`` (what) and ``build.py`` (how)."""
