#!/bin/sh
# The part of check_wheels.sh that runs in the new Debian. /check/all has every wheel, /check/runtime those that run what
# was compiled.
set -eu
cd /check

step() { echo "check-wheels: $1"; }
stop() { echo "check-wheels: $1" >&2; exit 1; }
new_venv() { python3 -m venv "$1" && pip="$1/bin/pip --disable-pip-version-check --quiet"; }

step "nothing here to compile with"
for tool in cc gcc clang c++ ld as ld.lld ar llvm-config ptxas; do
  ! command -v "$tool" >/dev/null || stop "there is a $tool"
done
for pattern in 'stdio.h' 'libLLVM*' 'libMLIR*' 'crt1.o' 'libc.so' 'ocml.bc'; do
  found=$(find / -xdev -path /check -prune -o -name "$pattern" -print -quit)
  [ -z "$found" ] || stop "there is $found"
done

step "the wheels, with the extras compiler and cuda"
new_venv compiling
$pip install --no-index --find-links all 'offload[compiler,cuda]'
compiling/bin/offload doctor || stop "offload doctor misses something"

step "README's example"
awk '/^```python$/ { inside = 1; next } /^```$/ { inside = 0 } inside' README.md >readme.py
grep -q offload.compile readme.py || stop "README.md has no example"
compiling/bin/python readme.py

step "the examples, built for NVIDIA, AMD and this CPU, and run on it"
mkdir -p project/scripts && mv demo.py project/scripts && cp -r examples project
compiling/bin/python project/scripts/demo.py

step "a function of AMD's and NVIDIA's libraries"
cat >sines.mlir <<'END'
func.func @sines(%x: memref<?xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %size = memref.dim %x, %zero : memref<?xf32>
  scf.parallel (%i) = (%zero) to (%size) step (%one) {
    %value = memref.load %x[%i] : memref<?xf32>
    %sine = math.sin %value : f32
    memref.store %sine, %x[%i] : memref<?xf32>
  }
  return
}
END
if ROCM_PATH=/nowhere compiling/bin/offload build -q sines.mlir -o sines.so -t rocdl:gfx942; then
  stop "no function of AMD's library in this program"
fi
compiling/bin/offload build -q sines.mlir -o sines.so -t nvvm:sm_90 -t rocdl:gfx942 -t rocdl:gfx1100 -t host
compiling/bin/offload inspect sines.so

step "an example package, built in isolation"
$pip wheel --no-index --find-links all --no-deps -w built examples/packages/setuptools
ls built

step "that package, where offload's compiler is not"
new_venv running
$pip install --no-index --find-links runtime built/*.whl
! running/bin/pip list 2>/dev/null | grep -i -E 'llvm|nvidia' || stop "there is a compiler"
running/bin/python - <<'END'
import numpy as np
from vectorops import kernels

x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
kernels.saxpy(2, x, y)
assert (y == 2 * x + 1).all()
print("right, on the backend", kernels.library.backend)
import offload

try:
    offload.compile("examples/saxpy.mlir")
except offload.ToolkitError as error:
    print(error)
    assert "pip install 'offload[compiler]==" in str(error)
else:
    raise SystemExit("compiled without a compiler")
END
if running/bin/offload build examples/saxpy.mlir -o saxpy.so; then stop "built without a compiler"; else [ $? = 3 ]; fi

step "all of it works"
