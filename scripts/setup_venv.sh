#!/bin/sh
# setup_venv.sh VENV PYTHON EXTRAS: a virtual environment with offload and these of its extras.
set -eu
venv=$1
python=$2
extras=$3

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
  { echo "setup: $python is $("$python" --version); offload needs Python 3.10 or later: make PYTHON=python3.11" >&2; exit 1; }
[ -x "$venv/bin/pip" ] || "$python" -m venv "$venv"

pip() { "$venv/bin/pip" --quiet --disable-pip-version-check "$@"; }

# Without build isolation the build folder stays valid from one installation to the next: what did not change is not
# compiled again. (A plain `pip install .` isolates, and works as well.)
echo "setup: build tools"
pip install 'scikit-build-core>=0.10' 'pybind11>=2.13' cmake ninja
. scripts/compiler.sh
echo "setup: building and installing offload into $venv (the first time takes some minutes)"
PATH="$PWD/$venv/bin:$PATH" pip install --no-build-isolation ".[$extras]"
