"""Prints the folder of OffloadConfig.cmake, or with ``--includes`` the folders of C and C++ headers."""

import sys

from offload.paths import package_file

if sys.argv[1:] == ["--includes"]:
    headers = package_file("cmake/include/offload/memref.h").parent.parent
    print(f"{headers};{package_file('include/mgpu.h').parent}")
else:
    print(package_file("cmake/OffloadConfig.cmake").parent)
