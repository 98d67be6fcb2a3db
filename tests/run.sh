#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests, or some.
#   tests/run.sh [--quick] [--again] [NAME...]
# --quick   for a developer's loop: the unit and fabric tests only
# --again   runs the tests even if they passed before and nothing has changed since
# NAME      these tests only: a label (unit, device, gpu, fabric, conformance, way, process, tool, example, instructions,
#           house), a suite (RemoteStreambuf), or a case (RemoteStreambuf.ShowsBadbit*)
# Takes UCXIO_WERROR=ON and UCXIO_BUILD_BENCHMARKS=ON from the environment.
set -euo pipefail
cd "$(dirname "$0")/.."

programs='unit device gpu fabric conformance process tool'
quick=0 again=0 names=()
for argument in "$@"; do
  case $argument in
    --quick) quick=1 ;;
    --again) again=1 ;;
    -*) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    *) names+=("$argument") ;;
  esac
done
build=build/dev

fail() {
  echo "tests/run.sh: $*" >&2
  exit 2
}

# Prints the labels of the programs that have a suite of this name.
programs_with() { # SUITE
  local label
  for label in $programs; do
    if grep -qE "^(TYPED_)?TEST(_[FP])?\($1," tests/"$label"/*_test.cpp; then echo "$label"; fi
  done
}

# Sets what is built and run: `targets`, `labels`, and `UCXIO_CASES`, which tests/support/run_cases.py obeys.
choose() {
  local name suite found chosen=() cases=()
  targets=(all) labels=. scope=all
  if [ $quick = 1 ]; then names+=(unit fabric); fi
  if [ ${#names[@]} = 0 ]; then return; fi
  for name in "${names[@]}"; do
    if [[ " $programs way example instructions house " == *" $name "* ]]; then
      chosen+=("$name")
      continue
    fi
    suite=${name%%.*}
    found=$(programs_with "${suite##*/}")
    [ -n "$found" ] || fail "\"$name\" is no label, and no suite of tests/*/*_test.cpp"
    chosen+=($found)
    [[ $name == *.* ]] || name+=.*
    cases+=("$name" "$name/*" "*/$name" "*/$name/*")
  done
  if [ ${#cases[@]} -gt 0 ]; then
    for name in "${names[@]}"; do
      [[ " ${chosen[*]} " != *" $name "* ]] || fail "labels and suites do not go together: $name, and others"
    done
    export UCXIO_CASES=$(IFS=:; echo "${cases[*]}")
  fi
  mapfile -t chosen < <(printf '%s\n' "${chosen[@]}" | sort -u)
  labels="^($(IFS='|'; echo "${chosen[*]}"))\$" targets=() scope=some
  if [ $quick = 1 ]; then scope=quick; fi
  for name in "${chosen[@]}"; do
    [[ " $programs " == *" $name "* ]] || { targets=(all) && break; }
    targets+=("ucxio-$name-tests")
    if [ "$name" = process ]; then targets+=(ucxio-test-peer); fi
  done
}

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

in_words() { echo "$(($1 / 60)) min $(($1 % 60)) s"; } # SECONDS

# How long it takes: as it took last time, or as it took where this was written.
announce() {
  [ $scope != some ] || return 0
  local built tested
  if read -r built tested <$took 2>/dev/null; then
    echo "Last time the build took $(in_words "$built"), and the tests $(in_words "$tested")."
  elif [ $scope = all ]; then
    echo "On two processors the build takes about 6 minutes the first time, and the tests about 6."
  fi
}

choose
passed=$build/passed-$scope
took=$build/took-$scope
announce
cmake/setup.sh tests
mkdir -p $build
begin=$SECONDS
cmake --preset dev -DUCXIO_WERROR="${UCXIO_WERROR:-OFF}" \
  -DUCXIO_BUILD_BENCHMARKS="${UCXIO_BUILD_BENCHMARKS:-OFF}" >$build/configure.log 2>&1 ||
  { cat $build/configure.log >&2; exit 1; }
cmake --build $build --target "${targets[@]}"
built=$((SECONDS - begin))
echo "The build took $(in_words $built)."

now=$(fingerprint)
if [ $again = 0 ] && [ $scope != some ] && [ "$(head -n 1 "$passed" 2>/dev/null)" = "$now" ]; then
  echo "Nothing has changed since the tests passed, $(date -r "$passed" '+%F %T'); --again runs them again."
  tail -n +2 "$passed"
  exit 0
fi
rm -f "$passed"
begin=$SECONDS
tests/support/run_ctest.sh $build "$labels"
tested=$((SECONDS - begin))
echo "$built $tested" >"$took"
{ echo "$now"; sed -n 's/^[0-9]*% tests passed/Then: &/p' $build/tests.log; } >"$passed"
