#!/usr/bin/env bash
# Tests that tests/run-gpu.sh packs what runs elsewhere, and says plainly when nothing was run.
#   tests/support/run/run_gpu_test.sh BUILD DRIVER      (a CUDA driver that is none)
# Ends with 77 where the package with UCX has not been fetched: no test does that.
set -uo pipefail
cd "$(dirname "$0")/../../.."
build=$1
driver=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

failed=0
expect() { # WHAT WANTED FOUND
  [ "$2" = "$3" ] && return
  echo "FAILED: $1: '$3' instead of '$2'" >&2
  failed=1
}

if ! tests/support/run/newest_ucx.sh --fetched >/dev/null; then
  echo "skipped: the newest UCX has not been fetched (tests/support/run/newest_ucx.sh)"
  exit 77
fi

said=$(UCXIO_CUDA_DRIVER=/nowhere/libcuda.so.1 tests/run-gpu.sh "$folder/packed" "$build")
expect "without a GPU it ends with" 77 $?
expect "and says" "run-gpu: no GPU here: NOTHING WAS RUN" "$(tail -n 1 <<<"$said")"

# Elsewhere: nothing of the build's is named in the folder.
mv "$folder/packed" "$folder/moved"
found=$(LD_LIBRARY_PATH=$folder/moved/lib:$folder/moved/ucx ldd "$folder"/moved/bin/* |
  grep -F -e "not found" -e "$build" | head -n 3)
expect "its programs lack, or have of the build" "" "$found"
said=$(UCXIO_CUDA_DRIVER=$driver timeout 240 "$folder/moved/run.sh" --passes=1 --pass_seconds=0.001 2>&1)
expect "with a driver that is none it ends with" 0 $?
expect "and says" "run-gpu: all passed" "$(tail -n 1 <<<"$said")"
[ $failed = 0 ] || echo "$said" | tail -n 60 >&2
exit $failed
