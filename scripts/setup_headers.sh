#!/bin/sh
# setup_headers.sh FOLDER: unpacks hipSPARSE's headers for the tests, which compare the runtime's declarations with
# them. The headers alone, not the package: it needs more than a gigabyte of libraries, of use with an AMD GPU only.
# Where there is no such package, that comparison is skipped.
set -eu
folder=$1
package=libhipsparse-dev

command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || exit 0
mkdir -p "$folder"
cd "$folder"
apt-cache show "$package" >/dev/null 2>&1 || exit 0
echo "setup: unpacking the headers of $package"
apt-get download -qq "$package" 2>/dev/null || exit 0
dpkg-deb -x "$package"_*.deb .
rm -f "$package"_*.deb
