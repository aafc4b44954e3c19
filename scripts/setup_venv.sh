#!/bin/sh
# setup_venv.sh VENV PYTHON: a virtual environment with offload, NVIDIA's compiler and what the tests need.
set -eu
venv=$1
python=$2

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
  { echo "setup: $python is $("$python" --version); offload needs Python 3.10 or later: make PYTHON=python3.11" >&2; exit 1; }
[ -x "$venv/bin/pip" ] || "$python" -m venv "$venv"

# One wheel goes in and out of the way quickly; the toolkit wheels stay as they are.
echo "setup: building and installing offload into $venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check '.[cuda,test]'
