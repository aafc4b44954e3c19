"""The CMake package ``Offload``. ``python -m offload.cmake`` prints its folder, for ``cmake -DOffload_DIR=…``."""
