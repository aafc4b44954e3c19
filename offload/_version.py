"""The version of this package; pyproject.toml has the same (a test compares)."""

__version__ = "0.1.0"
