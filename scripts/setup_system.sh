#!/bin/sh
# Installs what pip cannot: LLVM/MLIR/lld 22, AMD's device libraries, a C++ compiler, Python's headers. Does nothing
# where all of it is there. Debian and Ubuntu; elsewhere it says what to install.
# `setup_system.sh bench` installs, too, what the benchmarks compare with and pip does not have: PoCL, hipcc;
# `setup_system.sh test` what tests alone need: an emulator of AArch64.
set -eu

extra=""
case ${1:-} in
  "") ;;
  bench) extra="pocl-opencl-icd hipcc" ;;
  test) extra="qemu-user" ;;
  *) echo "setup: there is no $1 to install; there are: bench, test" >&2; exit 2 ;;
esac

is_installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }
is_known() { apt-cache show "$1" >/dev/null 2>&1; }

# AMD's device libraries: Debian 12 has one package of them, later releases name each after the LLVM that made it.
# Any that is not newer than ours does.
device_libraries() {
  for is_it in is_installed is_known; do
    for name in rocm-device-libs rocm-device-libs-22 rocm-device-libs-21 rocm-device-libs-20 rocm-device-libs-19 \
                rocm-device-libs-18 rocm-device-libs-17; do
      if "$is_it" "$name"; then
        echo "$name"
        return
      fi
    done
  done
  echo rocm-device-libs
}

find_missing() {
  packages="libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools liblld-22-dev lld-22 clang-22 $(device_libraries)
            libamdhip64-dev libclang-rt-22-dev g++ make binutils python3-venv python3-dev $extra"
  # The C library of AArch64, for libraries that are built here for machines of that architecture.
  [ "$(uname -m)" != x86_64 ] || packages="$packages libc6-dev-arm64-cross"
  missing=""
  for package in $packages; do
    is_installed "$package" || missing="$missing $package"
  done
}

find_missing
[ -z "$missing" ] && exit 0

stop() {
  echo "setup: $1" >&2
  echo "  offload's compiler half needs: LLVM, MLIR and lld 22 with their headers; AMD's device libraries (ocml.bc," >&2
  echo "  ockl.bc); a C++17 compiler; Python 3.10 or later with headers. As Debian packages:" >&2
  echo "    $(echo $packages)" >&2
  echo "  LLVM 22 is in Debian 12's security updates, in Debian 13 and, for others, at https://apt.llvm.org:" >&2
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
find_missing # names are known now
for package in $missing; do
  is_known "$package" || stop "no package source here has $package"
done
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
  stop "apt-get install failed"
