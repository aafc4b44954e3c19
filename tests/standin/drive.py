"""``drive.py ARTIFACT [BACKEND]``, with stand-in drivers on LD_LIBRARY_PATH: calls saxpy, prints the log as JSON."""

import ctypes
import json
import sys

import numpy as np

import offload

LIBRARIES = {"cuda": "libcuda.so.1", "hip": "libamdhip64.so.6"}

library = offload.load(sys.argv[1])
if len(sys.argv) > 2:
    library.use(sys.argv[2])
backend = library.backend
x = np.arange(1000, dtype=np.float32)
try:
    library.saxpy(2, x, x.copy())
    refused = ""
except offload.SignatureError as error:
    refused = str(error)
there, out = library.device.array(x), library.device.zeros((1000,), np.float32)
driver = ctypes.CDLL(LIBRARIES[backend])
driver.standin_log.restype = ctypes.c_char_p
driver.standin_clear()
failed = ""
try:
    library.saxpy(2, there, out)
    library.kernels.saxpy_kernel[4, 256](there, out, 2.0)
    library.saxpy(2, there, out)
except offload.DeviceError as error:
    failed = str(error)
log = driver.standin_log().decode().splitlines()
print(json.dumps({"backend": backend, "refused": refused, "failed": failed, "log": log, "x": there.pointer}))
