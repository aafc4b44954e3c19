"""What the C runtime declares of the vendors' libraries, beside their own headers where this machine has them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from compiling import ROOT
from runtime_sources import RUNTIME, cc

HEADERS = {
    "cuda": ("cuda.h",),
    "cusparse": ("cusparse.h", "cuda_runtime_api.h"),
    "cusparselt": ("cusparseLt.h", "cusparse.h", "cuda_runtime_api.h"),
    "hip": ("hip/hip_runtime_api.h",),
    "hipsparse": ("hipsparse/hipsparse.h",),
}
"""What each comparison includes, and what that includes of other packages."""


def vendor_headers(name: str) -> list[str]:
    """The flags to compile against a vendor's own headers; skips where this machine does not have them."""
    folders = [Path("/usr/include")]
    flags = []
    if name.startswith("hip"):
        folders.insert(0, Path(os.environ.get("ROCM_PATH", "/opt/rocm")) / "include")
        folders.append(ROOT / "build" / "headers" / "usr" / "include")  # scripts/setup_headers.sh
        flags.append("-D__HIP_PLATFORM_AMD__")
    else:
        folders.insert(0, Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include")
        packages = [Path(entry) / "nvidia" for entry in sys.path]
        folders += [package / folder / "include" for package in packages for folder in ("cu13", "cusparselt")]
    for header in HEADERS[name]:
        found = [folder for folder in folders if (folder / header).is_file()]
        if not found:
            pytest.skip(f"{header} is not installed")
        flags.append(f"-isystem{found[0]}")
    return flags


@pytest.mark.parametrize("name", HEADERS)
def test_vendor_abi(name: str) -> None:
    """Our declarations of a vendor's functions, constants and structs agree with the vendor's header."""
    cc("-fsyntax-only", *vendor_headers(name), RUNTIME / "checks" / f"{name}_abi_check.c")
