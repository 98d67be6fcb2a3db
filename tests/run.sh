#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests.
#   tests/run.sh [--quick] [--again]
# --quick   for a developer's loop: the unit and fabric tests only
# --again   runs the tests even if they passed before and nothing has changed since
# Takes UCXIO_WERROR=ON and UCXIO_BUILD_BENCHMARKS=ON from the environment.
set -euo pipefail
cd "$(dirname "$0")/.."

targets=(all) labels=. scope=all again=0
for argument in "$@"; do
  case $argument in
    --quick) targets=(ucxio-unit-tests ucxio-fabric-tests) labels='^(unit|fabric)$' scope=quick ;;
    --again) again=1 ;;
    *) sed -n '3,5s/^# *//p' "$0" >&2; exit 2 ;;
  esac
done
build=build/dev
passed=$build/passed-$scope

# What the outcome depends on: every file of the tree, the tools, UCX, and what the user says to it.
fingerprint() {
  {
    find . \( -path ./.git -o -path './build*' -o -path ./out -o -path ./.cache \) -prune \
      -o -type f -print0 | sort -z | xargs -0 sha256sum
    "${CXX:-c++}" --version
    cmake --version
    ldd $build/lib/libucxio-core.so | grep libuc | sed 's/(.*//'
    env | grep -E '^(UCX|UCXIO|LD)_' | sort || true
  } 2>&1 | sha256sum | sed 's/ .*//'
}

cmake/setup.sh tests
mkdir -p $build
cmake --preset dev -DUCXIO_WERROR="${UCXIO_WERROR:-OFF}" \
  -DUCXIO_BUILD_BENCHMARKS="${UCXIO_BUILD_BENCHMARKS:-OFF}" >$build/configure.log 2>&1 ||
  { cat $build/configure.log >&2; exit 1; }
cmake --build $build --target "${targets[@]}"

now=$(fingerprint)
if [ $again = 0 ] && [ "$(head -n 1 $passed 2>/dev/null)" = "$now" ]; then
  echo "Nothing has changed since the tests passed, $(date -r $passed '+%F %T'); --again runs them again."
  tail -n +2 $passed
  exit 0
fi
rm -f $passed
ctest --test-dir $build -L "$labels" -j2 --output-on-failure --no-tests=error | tee $build/tests.log
{ echo "$now"; grep -E '^[0-9]+% tests passed' $build/tests.log | sed 's/^/Then: /'; } >$passed
