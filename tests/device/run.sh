#!/bin/sh
# Runs this bundle: ./run.sh STAGE… with OUT=folder for what comes out (default: ./out) and WORK=folder for what it is
# made with (default: ./work). Where these are elsewhere, nothing is written in here.
#
#   suite      every check of kernels and host programs, against NumPy
#   calls      arrays, streams and graphs of other packages; printf, assertions, faults
#   launch     what a launch costs, beside other packages
#   first      how long until the first result, beside packages that compile then
#   kernels    kernels that memory bounds, beside other packages
#   matmul     products of matrices, beside cuBLAS
#   sanitizer  a part of the suite under compute-sanitizer, and a planted error that it must find
#   all        all of them, each for itself: one that fails does not stop the others
#
# OFFLOAD_BACKEND=host runs it on the CPU; what needs a GPU is then counted as not run. A stage that takes too long is
# ended. At the end, summary.json has what ran where and what became of it, log.txt what was said; the exit code is 1 if
# a stage failed, 2 if none could begin: something is missing, or there is no device.
# SHORT=1 takes a part of everything. INSTALLED=offload takes the offload that PYTHON has, instead of the one in here.
set -u
cd "$(dirname "$0")" || exit 2
here=$PWD
STAGES="suite calls launch first kernels matmul sanitizer all"

stop() { echo "run.sh: $1" >&2; exit 2; }

[ $# -gt 0 ] || stop "name a stage: $STAGES"
for each in "$@"; do
  case " $STAGES " in *" $each "*) ;; *) stop "there is no stage $each; there are: $STAGES" ;; esac
done
mkdir -p "${OUT:-out}" "${WORK:-work}" || stop "name other folders with OUT= and WORK="
OUT=$(cd "${OUT:-out}" && pwd)
WORK=$(cd "${WORK:-work}" && pwd)
PYTHON=${PYTHON:-python3}
BACKEND=${OFFLOAD_BACKEND:-cuda}
JOBS=${JOBS:-4}
unset OFFLOAD_BACKEND
export PYTHONPATH="$WORK/site:$here/tests:$here/bench${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# Other packages keep what they compile at home, which may be missing.
export OFFLOAD_CACHE_DIR="$WORK/cache" CUPY_CACHE_DIR="$WORK/cupy" TRITON_CACHE_DIR="$WORK/triton"
export CUDA_CACHE_PATH="$WORK/driver" XLA_PYTHON_CLIENT_PREALLOCATE=false
every=1
[ -z "${SHORT:-}" ] || every=60

# The runtime half from source, and the compiled programs. Once for this bundle and this Python.
setup() {
  for_what=$(cat bundle.json; echo "${INSTALLED:-}"; "$PYTHON" -VV 2>&1) || stop "there is no $PYTHON"
  [ "$for_what" = "$(cat "$WORK/ready" 2>/dev/null)" ] && return 0
  rm -rf "$WORK/ready" "$WORK/site" "$WORK/build" "$WORK/artifacts"
  for module in numpy ml_dtypes pytest hypothesis ${INSTALLED:-scikit_build_core pybind11}; do
    "$PYTHON" -c "import $module" 2>/dev/null || stop "$PYTHON has no $module"
  done
  [ -n "${INSTALLED:-}" ] ||
    "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-index --no-deps --upgrade \
      --target "$WORK/site" "$here/source" --config-settings=cmake.define.OFFLOAD_COMPILER=OFF \
      --config-settings=build-dir="$WORK/build" ||
    stop "the runtime cannot be installed"
  "$PYTHON" -W ignore -m tarfile -e "$here/artifacts.tar.xz" "$WORK" || stop "artifacts.tar.xz cannot be unpacked"
  echo "$for_what" >"$WORK/ready"
}

# Without a device each check would fail for itself.
device() {
  timeout -k 10 120 "$PYTHON" -m device.summary --backend "$BACKEND" --artifacts "$WORK/artifacts" ||
    stop "there is nothing to run on; OFFLOAD_BACKEND=host is the CPU"
}

# stage NAME SECONDS COMMAND…: runs it, keeps its output, its exit code and how long it took.
failed=0
stage() {
  name=$1 limit=$2
  shift 2
  begin=$(date +%s)
  rm -f "$OUT/$name.json"
  echo "== $name (at most $limit s)"
  timeout -k 10 "$limit" "$@" >"$WORK/$name.log" 2>&1
  code=$?
  tail -n "${LINES_SHOWN:-25}" "$WORK/$name.log"
  { echo "== $name, exit code $code"; cat "$WORK/$name.log"; } >>"$OUT/log.txt"
  [ "$code" = 0 ] || failed=1
  case $code in 124 | 137) echo "ended: it took longer than $limit s" ;; esac
  echo "{\"stage\": \"$name\", \"exit_code\": $code, \"seconds\": $(($(date +%s) - begin)), \"limit\": $limit}" \
    >>"$WORK/stages.jsonl"
  echo "== $name: exit code $code"
}

suite() { # NAME SECONDS EVERY PATTERN
  stage "$1" "$2" "$PYTHON" -m device.suite --artifacts "$WORK/artifacts" --backend "$BACKEND" --json "$OUT/$1.json" \
    --seconds $(($2 - 15)) --jobs "$JOBS" --every "$3" --only "$4"
}

bench() { # NAME SECONDS
  stage "$1" "$2" "$PYTHON" "$here/bench/hardware.py" "$1" --artifacts "$WORK/artifacts" --backend "$BACKEND" \
    --json "$OUT/$1.json" ${SHORT:+--short}
}

one() {
  case $1 in
    suite) suite suite 420 "$every" '^(?!packages/|two libraries/|faults/|printf/)' ;;
    calls) suite calls 200 1 '^(packages|two libraries|faults|printf)/' ;;
    launch) bench launch 180 ;;
    first) bench first 100 ;;
    kernels) bench kernels 380 ;;
    matmul) bench matmul 200 ;;
    sanitizer) stage sanitizer 200 "$PYTHON" -m device.sanitizer --artifacts "$WORK/artifacts" --backend "$BACKEND" \
      --json "$OUT/sanitizer.json" --every "$((every * 20))" ;;
    all) for each in calls suite launch first matmul kernels sanitizer; do one $each; done ;;
  esac
}

setup
device
: >"$WORK/stages.jsonl"
: >"$OUT/log.txt"
rm -f "$OUT/summary.json"
for each in "$@"; do one "$each"; done
"$PYTHON" -m device.summary --stages "$WORK/stages.jsonl" --backend "$BACKEND" --artifacts "$WORK/artifacts" \
  --out "$OUT" --bundle "$here/bundle.json" || failed=1
exit $failed
