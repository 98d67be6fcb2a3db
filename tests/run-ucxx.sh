#!/usr/bin/env bash
# Tests ucxio beside UCXX: the example examples/ucxx_reader.cpp, and one process with both (tests/ucxx).
#   tests/run-ucxx.sh [BUILD]        (default: build/dev, which has to be built)
# Gets UCXX and its UCX from PyPI into build/ucxx.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/dev}
venv=build/ucxx
mkdir -p $venv
[ -x $venv/bin/pip ] || python3 -m venv $venv
$venv/bin/pip install --quiet --no-deps --only-binary :all: libucxx-cu13==0.52.0 libucx-cu13==1.21.0
packages=$(echo $venv/lib/python3*/site-packages)
export LD_LIBRARY_PATH=$PWD/$packages/libucx/lib:$PWD/$packages/libucxx/lib64
for source in examples/ucxx_reader.cpp tests/ucxx/beside_ucxx.cpp; do
  program=$venv/$(basename $source .cpp)
  "${CXX:-c++}" -std=c++20 -O1 -Wall -Wextra -Iinclude -isystem "$packages/libucxx/include" \
    -isystem "$packages/libucx/include" $source -o "$program" -L"$build/lib" -L"$packages/libucxx/lib64" \
    -L"$packages/libucx/lib" -lucxio-streams -lucxio-core -lucxx -lucp -lucs -Wl,-rpath,"$PWD/$build/lib"
done
export UCX_HANDLE_ERRORS=none
timeout 120 $venv/ucxx_reader
for transports in posix,cma,self tcp,self; do
  for worker in own borrowed; do UCX_TLS=$transports timeout 120 $venv/beside_ucxx $worker; done
done
echo "beside UCXX $($venv/bin/pip show libucxx-cu13 | sed -n 's/^Version: //p'): passed"
