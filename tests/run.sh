#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests, or some.
#   tests/run.sh [--again] [--quick | NAME...]
# --again   runs the tests even if they passed before and nothing has changed since
# --quick   for a developer's loop: the unit and fabric tests only
# NAME      these tests only: a label (unit, device, gpu, fabric, conformance, way, socket, process, tool, example, instructions,
#           python, house), a suite (RemoteStreambuf), or a case (RemoteStreambuf.ShowsBadbit*)
# Takes UCXIO_WERROR=ON, UCXIO_BUILD_BENCHMARKS=ON, UCXIO_WITH_BOOST=ON and UCXIO_BUILD_PYTHON=OFF from the environment.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "tests/run.sh: $*" >&2
  exit 2
}

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
[ $quick = 0 ] || [ ${#names[@]} = 0 ] || fail "--quick has its own tests: leave it out, or the names"
build=build/dev

# Prints the labels of the programs that have a suite of this name.
programs_with() { # SUITE
  local label
  for label in $programs; do
    if grep -qrE --include='*_test.cpp' "^(TYPED_)?TEST(_[FP])?\($1,|^TYPED_TEST_SUITE\($1," tests/"$label"; then echo "$label"; fi
  done
}

# Prints the filter that finds a name: as it is, of a parameterised suite, or of a suite of types.
filter_of() { # NAME
  local suite=${1%%.*} case='*'
  if [[ $1 == *.* ]]; then case=${1#*.}; fi
  printf '%s' "$suite.$case:$suite.$case/*:*/$suite.$case:*/$suite.$case/*:$suite/*.$case:*/$suite/*.$case"
}

# Sets what is built and run: `targets`, `labels`, and `UCXIO_CASES`, which tests/support/run/run_cases.py obeys.
choose() {
  local name suite found
  targets=(all) labels=. scope=all chosen=() suites=()
  unset UCXIO_CASES
  if [ $quick = 1 ]; then names=(unit fabric); fi
  if [ ${#names[@]} = 0 ]; then return; fi
  for name in "${names[@]}"; do
    if [[ " $programs way socket example instructions python house " == *" $name "* ]]; then
      chosen+=("$name")
      continue
    fi
    suite=${name%%.*}
    suite=${suite%/[0-9]*}
    found=$(programs_with "${suite##*/}")
    [ -n "$found" ] || fail "\"$name\" is no label, and no suite of the files tests/**/*_test.cpp"
    # shellcheck disable=SC2206 # one label a line
    chosen+=($found)
    suites+=("$name")
  done
  if [ ${#suites[@]} -gt 0 ]; then
    [ ${#suites[@]} = ${#names[@]} ] || fail "labels and suites do not go together: ${names[*]}"
    UCXIO_CASES=$(for name in "${suites[@]}"; do filter_of "$name"; printf ':'; done)
    export UCXIO_CASES=${UCXIO_CASES%:}
  fi
  mapfile -t chosen < <(printf '%s\n' "${chosen[@]}" | sort -u)
  labels="^($(IFS='|'; echo "${chosen[*]}"))\$" targets=() scope=some
  if [ $quick = 1 ]; then scope=quick; fi
  for name in "${chosen[@]}"; do
    [[ " $programs " == *" $name "* ]] || { targets=(all) && break; }
    targets+=("ucxio-$name-tests")
  done
}

# Fails where a suite or case was asked for that no program has.
check_suites() {
  local name label listed
  for name in "${suites[@]}"; do
    for label in "${chosen[@]}"; do
      # Read to its end: a program that is cut off would make the whole fail.
      listed=$(UCX_HANDLE_ERRORS=none $build/bin/ucxio-"$label"-tests --gtest_list_tests \
        --gtest_filter="$(filter_of "$name")")
      if grep -q '^  ' <<<"$listed"; then continue 2; fi
    done
    fail "no case has the name \"$name\""
  done
}

# What the outcome depends on: every file of the tree, the tools, UCX, and what the user says to it.
fingerprint() {
  {
    find . \( -path ./.git -o -path './build*' -o -path ./out -o -path ./.cache -o -path ./python/build \
      -o -path ./python/library \) -prune \
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
  local built tested
  if [ $scope = some ]; then
    echo "The build takes up to 5 minutes on two processors; the tests that were asked for take what they take in all of 11."
  elif [ -e "$took" ] && read -r built tested <"$took"; then
    echo "Last time the build took $(in_words "$built"), and the tests $(in_words "$tested")."
  elif [ $scope = quick ]; then
    echo "On two processors the build takes about 4 minutes the first time, and the tests about 2."
  else
    echo "On two processors the build takes about 5 minutes the first time, and the tests about 11."
  fi
}

choose
passed=$build/passed-$scope
took=$build/took-$scope
announce
cmake/setup.sh tests
mkdir -p $build
begin=$SECONDS
# The package for Python, where it is tested, and there is an interpreter for it. UCXIO_BUILD_PYTHON=OFF leaves it out.
python=()
if [ $scope = all ] || [[ " ${chosen[*]} " == *" python "* ]]; then
  python=(-DUCXIO_BUILD_PYTHON=OFF)
  if [ "${UCXIO_BUILD_PYTHON:-ON}" = ON ]; then
    cmake/setup.sh python
    code=0
    interpreter=$(tests/support/run/python_venv.sh) || code=$?
    case $code in
      0) python=(-DUCXIO_BUILD_PYTHON=ON "-DPython_EXECUTABLE=$interpreter") ;;
      77) echo "The package for Python is left out." ;;
      *) fail "no environment for Python could be made: it needs PyPI; UCXIO_BUILD_PYTHON=OFF leaves the package out" ;;
    esac
  fi
fi
cmake --preset dev "${python[@]}" -DUCXIO_WERROR="${UCXIO_WERROR:-OFF}" -DUCXIO_WITH_BOOST="${UCXIO_WITH_BOOST:-AUTO}" \
  -DUCXIO_BUILD_BENCHMARKS="${UCXIO_BUILD_BENCHMARKS:-OFF}" >$build/configure.log 2>&1 ||
  { cat $build/configure.log >&2; exit 1; }
cmake --build $build --target "${targets[@]}"
built=$((SECONDS - begin))
echo "The build took $(in_words $built)."
if [ ${#suites[@]} -gt 0 ]; then check_suites; fi

if [ $scope != some ]; then
  now=$(fingerprint)
  if [ $again = 0 ] && [ -e "$passed" ] && [ "$(head -n 1 "$passed")" = "$now" ]; then
    echo "Nothing has changed since the tests passed, $(date -r "$passed" '+%F %T'); --again runs them again."
    tail -n +2 "$passed"
    exit 0
  fi
  rm -f "$passed"
fi
begin=$SECONDS
tests/support/run/run_ctest.sh $build "$labels"
if [ $scope != some ]; then
  echo "$built $((SECONDS - begin))" >"$took"
  { echo "$now"; sed -n 's/^[0-9]*% tests passed/Then: &/p' $build/tests.log; } >"$passed"
fi
