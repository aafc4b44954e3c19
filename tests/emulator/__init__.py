"""AMD code objects executed on the CPU, instruction by instruction.

What an instruction does comes from the ISA manuals' own descriptions, which tinygrad ships as tables; see
``manual_compile.py`` for these, and ``special.py`` for what the descriptions leave out. ``hip_driver.py`` puts the
emulator behind the stand-in HIP library, so that a whole artifact runs: ``library.use("hip")`` and its functions
compute. What it shares with other vendors' emulators is in ``driver.py``, ``memory.py``, ``on_device.py`` and
``cases.py``.
"""
