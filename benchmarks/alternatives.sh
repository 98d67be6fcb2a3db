#!/usr/bin/env bash
# Compares our streams with NIXL and Mooncake, from their wheels, over TCP of the loopback interface.
#   benchmarks/alternatives.sh RESULTS [--passes=N] [--pass_seconds=S]
# REQUIRES: build/release/bin/stream_contender. Says so, and goes on, where a wheel can not be had.
set -euo pipefail
cd "$(dirname "$0")/.."

results=$1
shift
venv=build/alternatives-venv
log=build/alternatives.log
: >$log
if [ ! -x $venv/bin/pip ] && ! python3 -m venv $venv >>$log 2>&1; then
  echo "Without the alternatives: no virtual environment can be made (see $log)." >&2
  exit 0
fi
# Without what they ask for besides: their data path needs none of it, and it is gigabytes.
for wheel in numpy nixl-cu13 mooncake-transfer-engine-non-cuda; do
  $venv/bin/pip install --quiet --no-deps --only-binary :all: $wheel >>$log 2>&1 ||
    echo "Without $wheel: it can not be installed into $venv (see $log)." >&2
done
echo "alternatives, loopback:"
benchmarks/alternatives/compare.py "$results" build/release/bin/stream_contender $venv/bin/python "$@"
