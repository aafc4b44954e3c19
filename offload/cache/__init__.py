"""What was compiled, kept on disk and, for teams, in a shared store: bytes by the hash of what decides them.

Knows nothing of compiling: ``offload/compiler/keys.py`` says what decides the bytes of a stage. Imports no LLVM.
``cache.py`` is what others use; builds without a cache need the locks alone, and import no more.
"""
