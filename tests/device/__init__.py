"""The suite that goes to another machine: programs compiled here, run there without a compiler.

``checks.py`` says what a check is, ``groups/`` has them, ``store.py`` keeps their programs compiled, ``suite.py`` runs
them in processes of their own (``python -m device.suite``). scripts/device_bundle.py packs all of it into one folder.
Everything runs on the CPU too, but for what names an operation of a vendor's.
"""
