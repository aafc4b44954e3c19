#!/bin/sh
# check_wheels.sh DIST: are the wheels of that folder enough, on a machine that has Python and nothing to compile with?
# Makes a Debian 12 with python3 alone, installs them there, builds and runs README's example and the examples, builds
# an example package in isolation, and runs that package where offload's compiler is not. Needs root (chroot), debootstrap,
# and the network for Debian's packages and those of PyPI that the wheels depend on; the Debian inside has none.
set -eu
cd "$(dirname "$0")/.."
dist=$(realpath "$1")
work=build/check-wheels
debian=$work/debian
packages=$work/packages
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

stop() { echo "check-wheels: $1" >&2; exit 1; }
[ "$(id -u)" = 0 ] || stop "needs root, to make a Debian of its own and to enter it"
command -v debootstrap >/dev/null || stop "no debootstrap here: apt-get install debootstrap"
ls "$dist"/offload-*-py3-none-*.whl "$dist"/offload_llvm-*-cp311-*.whl >/dev/null ||
  stop "$dist has no wheels for Debian 12's Python 3.11: make wheels WHEEL_PYTHONS=python3.11"

# Kept from one check to the next; what is installed into it goes to /check, which is not.
if [ ! -e "$debian/.complete" ]; then
  echo "check-wheels: making a Debian 12 (some minutes)"
  rm -rf "$debian"
  mkdir -p "$work"
  debootstrap --variant=minbase --include=python3,python3-venv bookworm "$debian" "$mirror" >"$work/debootstrap.log" 2>&1 ||
    { tail -n 5 "$work/debootstrap.log" >&2; stop "debootstrap failed; $work/debootstrap.log has the rest"; }
  touch "$debian/.complete"
fi

# What the wheels and the example package ask for, for that Python.
[ -x "$work/venv/bin/pip" ] || python3 -m venv "$work/venv"
"$work/venv/bin/pip" download --quiet --disable-pip-version-check --dest "$packages" --only-binary=:all: \
  --python-version 3.11 --implementation cp --abi cp311 --abi abi3 --abi none \
  --platform "manylinux_2_28_$(uname -m)" --platform "manylinux_2_27_$(uname -m)" --platform "manylinux2014_$(uname -m)" \
  'numpy>=1.23' 'setuptools>=77' 'nvidia-cuda-nvcc>=13' 'nvidia-nvvm>=13' 'nvidia-cuda-runtime>=13'

rm -rf "$debian/check"
mkdir -p "$debian/check/all" "$debian/check/runtime"
cp "$packages"/*.whl "$dist"/*.whl "$debian/check/all"
cp "$packages"/numpy-*.whl "$dist"/offload-*.whl "$debian/check/runtime"
cp -r README.md examples scripts/demo.py scripts/check_wheels_inside.sh "$debian/check"
# In namespaces of its own: what is mounted is gone with it, and there is no network.
exec unshare --mount --net sh -ec 'mount -t proc proc "$1/proc"; shift; exec "$@"' sh "$debian" \
  chroot "$debian" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/check LANG=C.UTF-8 \
  /bin/sh /check/check_wheels_inside.sh
