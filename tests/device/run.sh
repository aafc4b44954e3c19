#!/bin/sh
# Runs this bundle: ./run.sh STAGE… with OUT=folder for what comes out (default: ./out).
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
# a stage failed.
# SHORT=1 takes a part of everything. INSTALLED=offload takes the offload that PYTHON has, instead of the one in here.
set -u
cd "$(dirname "$0")" || exit 2
here=$PWD
mkdir -p "${OUT:-out}" "${WORK:-work}" || exit 2
OUT=$(cd "${OUT:-out}" && pwd)
WORK=$(cd "${WORK:-work}" && pwd)
PYTHON=${PYTHON:-python3}
BACKEND=${OFFLOAD_BACKEND:-cuda}
JOBS=${JOBS:-4}
unset OFFLOAD_BACKEND
export PYTHONPATH="$WORK/site:$here/tests:$here/bench${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
export OFFLOAD_CACHE_DIR="$WORK/cache"
every=1
[ -z "${SHORT:-}" ] || every=60

stop() { echo "run.sh: $1" >&2; exit 2; }

# The runtime half from source, and the compiled programs. Once.
setup() {
  [ -e "$WORK/ready" ] && return 0
  for module in numpy ml_dtypes pytest hypothesis ${INSTALLED:-scikit_build_core pybind11}; do
    "$PYTHON" -c "import $module" 2>/dev/null || stop "$PYTHON has no $module"
  done
  [ -n "${INSTALLED:-}" ] ||
    "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-index --no-deps --upgrade \
      --target "$WORK/site" "$here/source" -C cmake.define.OFFLOAD_COMPILER=OFF || stop "the runtime cannot be installed"
  "$PYTHON" -m tarfile -e "$here/artifacts.tar.xz" "$WORK" || stop "artifacts.tar.xz cannot be unpacked"
  touch "$WORK/ready"
}

# stage NAME SECONDS COMMAND…: runs it, keeps its output, its exit code and how long it took.
failed=0
stage() {
  name=$1 limit=$2
  shift 2
  begin=$(date +%s)
  echo "== $name (at most $limit s)"
  timeout -k 10 "$limit" "$@" >"$WORK/$name.log" 2>&1
  code=$?
  tail -n "${LINES_SHOWN:-25}" "$WORK/$name.log"
  { echo "== $name, exit code $code"; cat "$WORK/$name.log"; } >>"$OUT/log.txt"
  [ "$code" = 0 ] || failed=1
  echo "{\"stage\": \"$name\", \"exit_code\": $code, \"seconds\": $(($(date +%s) - begin)), \"limit\": $limit}" \
    >>"$WORK/stages.jsonl"
  echo "== $name: exit code $code"
}

suite() { # NAME SECONDS PATTERN
  stage "$1" "$2" "$PYTHON" -m device.suite --artifacts "$WORK/artifacts" --backend "$BACKEND" --json "$OUT/$1.json" \
    --seconds $(($2 - 15)) --jobs "$JOBS" --every "$every" --only "$3"
}

bench() { # NAME SECONDS
  stage "$1" "$2" "$PYTHON" "$here/bench/hardware.py" "$1" --artifacts "$WORK/artifacts" --backend "$BACKEND" \
    --json "$OUT/$1.json" ${SHORT:+--short}
}

one() {
  case $1 in
    suite) suite suite 420 '^(?!packages/|two libraries/|faults/|printf/)' ;;
    calls) every=1 && suite calls 200 '^(packages|two libraries|faults|printf)/' ;;
    launch) bench launch 180 ;;
    first) bench first 100 ;;
    kernels) bench kernels 380 ;;
    matmul) bench matmul 200 ;;
    sanitizer) stage sanitizer 200 "$PYTHON" -m device.sanitizer --artifacts "$WORK/artifacts" --backend "$BACKEND" \
      --json "$OUT/sanitizer.json" --every "$((every * 20))" ;;
    all) for each in calls suite launch first matmul kernels sanitizer; do one $each; done ;;
    *) stop "there is no stage $1; there are: suite calls launch first kernels matmul sanitizer all" ;;
  esac
}

[ $# -gt 0 ] || stop "name a stage: suite calls launch first kernels matmul sanitizer all"
setup
: >"$WORK/stages.jsonl"
: >"$OUT/log.txt"
for each in "$@"; do one "$each"; done
"$PYTHON" -m device.summary --stages "$WORK/stages.jsonl" --backend "$BACKEND" --artifacts "$WORK/artifacts" \
  --out "$OUT" --bundle "$here/bundle.json" || failed=1
exit $failed
