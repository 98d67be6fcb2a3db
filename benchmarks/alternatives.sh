#!/usr/bin/env bash
# Compares our streams with NIXL, Mooncake and UCXX, from their wheels, over TCP of the loopback
# interface, and within one host.
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
# UCXX is for C++, and wants a UCX that is older than the newest.
ucxx=build/alternatives-ucxx
rm -f $ucxx
packages=$($venv/bin/python -c 'import site; print(site.getsitepackages()[0])')
if ! { $venv/bin/pip install --quiet --no-deps --only-binary :all: libucxx-cu13 'libucx-cu13<1.22' &&
  "${CXX:-c++}" -std=c++20 -O2 -isystem "$packages/libucxx/include" \
    -isystem "$packages/libucx/include" benchmarks/alternatives/ucxx_contender.cpp -o $ucxx \
    -L"$packages/libucxx/lib64" -L"$packages/libucx/lib" -Wl,--no-as-needed -lucxx -lucp -lucs \
    -Wl,-rpath,"$packages/libucxx/lib64:$packages/libucx/lib"; } >>$log 2>&1; then
  echo "Without UCXX: it can not be installed into $venv, or be built against (see $log)." >&2
fi
for host in "" --host; do
  echo "alternatives, ${host:+within one host, }loopback:"
  benchmarks/alternatives/compare.py "$results" build/release/bin/stream_contender $venv/bin/python $ucxx \
    ${host:+"$host"} "$@"
done
