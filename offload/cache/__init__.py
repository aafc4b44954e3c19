"""What was compiled, kept on disk and, for teams, in a shared store: bytes by the hash of what decides them.

Knows nothing of compiling: ``offload/compiler/keys.py`` says what decides the bytes of a stage. Imports no LLVM.
"""

from offload.cache.cache import Cache, Claim, open_cache

__all__ = ["Cache", "Claim", "open_cache"]
