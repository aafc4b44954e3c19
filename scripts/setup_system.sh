#!/bin/sh
# Installs what pip cannot: LLVM/MLIR/lld 22, AMD's device libraries, a C++ compiler, Python's headers. Does nothing
# where all of it is there. Debian and Ubuntu; elsewhere it says what to install.
# `setup_system.sh bench` installs, too, what the benchmarks compare with and pip does not have: PoCL, hipcc;
# `setup_system.sh test` what tests alone need: an emulator of AArch64.
set -eu

packages="libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools liblld-22-dev lld-22 clang-22 rocm-device-libs
          libamdhip64-dev libclang-rt-22-dev g++ make binutils python3-venv python3-dev"
# The C library of AArch64, for libraries that are built here for machines of that architecture.
[ "$(uname -m)" = x86_64 ] && packages="$packages libc6-dev-arm64-cross"
case ${1:-} in
  "") ;;
  bench) packages="$packages pocl-opencl-icd hipcc" ;;
  test) packages="$packages qemu-user" ;;
  *) echo "setup: there is no $1 to install; there are: bench, test" >&2; exit 2 ;;
esac

missing=""
for package in $packages; do
  if ! command -v dpkg-query >/dev/null 2>&1 ||
     ! dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed'; then
    missing="$missing $package"
  fi
done
[ -z "$missing" ] && exit 0

stop() {
  echo "setup: $1" >&2
  echo "  offload's compiler half needs: LLVM, MLIR and lld 22 with their headers; AMD's device libraries (ocml.bc," >&2
  echo "  ockl.bc); a C++17 compiler; Python 3.10 or later with headers. As Debian packages:" >&2
  echo "    $(echo $packages)" >&2
  echo "  LLVM 22 is in Debian 12's security updates and, for other releases, at https://apt.llvm.org:" >&2
  echo "    deb http://apt.llvm.org/CODENAME/ llvm-toolchain-CODENAME-22 main" >&2
  exit 1
}

command -v apt-get >/dev/null 2>&1 || stop "this system has no apt-get, and these are missing:$missing"
if [ "$(id -u)" = 0 ]; then
  as_root=""
elif command -v sudo >/dev/null 2>&1; then
  as_root="sudo"
else
  stop "neither root nor sudo, and these packages are missing:$missing"
fi

echo "setup: installing$missing"
$as_root apt-get update -qq || stop "apt-get update failed"
for package in $missing; do
  apt-cache show "$package" >/dev/null 2>&1 || stop "no package source here has $package"
done
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
  stop "apt-get install failed"
