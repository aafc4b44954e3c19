"""``drive_sparse.py BACKEND [NAME…]``, with stand-in drivers and libraries on LD_LIBRARY_PATH: runs the cases of
tests/operations about sparse operations on the backend, against NumPy, and prints what each said and what it left."""

import ctypes
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from operations import Case, sparse, sparse_handles

import offload

LIBRARIES = {"cuda": ("libcuda.so.1", "libcusparse.so.12", "libcusparseLt.so.0"),
             "hip": ("libamdhip64.so.6", "libhipsparse.so.4")}  # fmt: skip


def run(case: Case, backend: str) -> str:
    """What went wrong, or nothing."""
    library = offload.compile(case.source, targets=["host"])
    library.use(backend)
    assert case.run is not None
    try:
        case.run(library)
    except (offload.DeviceError, offload.SignatureError) as error:
        return str(error)
    finally:
        library._native.api.mgpuDestroySparseEnv()
    return ""


def main() -> None:
    backend, names = sys.argv[1], sys.argv[2:]
    libraries = [ctypes.CDLL(name) for name in LIBRARIES[backend]]
    said = {}
    for case in (*sparse.CASES, *sparse_handles.CASES):
        name = f"{case.op}, {case.form}"
        if case.run is not None and (not names or name in names):
            said[name] = run(case, backend)
    left = {name: [library.standin_live(kind) for kind in (0, 1)]
            for name, library in zip(LIBRARIES[backend][1:], libraries[1:], strict=True)}  # fmt: skip
    print(json.dumps({"said": said, "left": left}))


main()
