#!/usr/bin/env bash
# What takes too long for every change (.ci/run has that): some eight hours on two processors.
#   tests/run-long.sh [STEP...]          all steps, or these
#   newest    20 min: all tests, built against and run with the newest UCX
#   whole     80 min: the sanitizers over all rounds of the tests, of which .ci/run does one in eight
#   deaths    60 min: fifty deaths of each kind beside peers that have UCX alone, on the system's and the newest UCX
#   fuzz      45 min: each fuzzer for ten minutes
#   repeat    60 min: all tests five times, and five times with both processors busy
#   rdma      90 min: all that goes over RDMA, in virtual machines (tests/run-rdma.sh)
#   mutants   60 min: which of the known ways to break the source no test notices (tests/support/mutants/mutate.py)
#   wheels    30 min: the sdist and the wheels of the Python package, of each interpreter here and of Debian 13
#   python-asan   60 min: the tests of the Python package with AddressSanitizer in the extension and the library
#   debian12, debian13   40 min each: README's commands in a fresh system, as root
# Goes on after a step that fails, and says at the end how each one ended.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
unset UCXIO_CASES UCXIO_TOOL UCXIO_TRANSFER_METHOD UCXIO_WAY UCXIO_CUDA_DRIVER UCXIO_FAKE_CUDA_SEED UCXIO_ROUTE
unset UCXIO_PASSED # everything is run

# Sets `wheel`, the prefix of UCX's wheel.
newest_ucx() { wheel=$(tests/support/run/newest_ucx.sh); }

newest() {
  newest_ucx && cmake --preset dev -B build/newest -DCMAKE_PREFIX_PATH="$wheel" && cmake --build build/newest &&
    build/newest/bin/ucxio-loaded-ucx "$(tests/support/run/newest_ucx.sh --version)" &&
    UCX_MEM_BISTRO_GRACE_DURATION=1ms tests/support/run/run_ctest.sh build/newest .
}

whole() {
  newest_ucx && cmake --preset asan -B build/asan-whole -DCMAKE_PREFIX_PATH="$wheel" -DUCXIO_SAVED_EFFORT=1 &&
    cmake --preset tsan -B build/tsan-whole -DUCXIO_SAVED_EFFORT=1 || return 1
  local outcome=0
  cmake --build build/asan-whole --target ucxio-{unit,device,gpu,fabric,conformance}-tests ucxio-loaded-ucx &&
    build/asan-whole/bin/ucxio-loaded-ucx "$(tests/support/run/newest_ucx.sh --version)" &&
    tests/support/run/run_ctest.sh build/asan-whole '^(unit|device|gpu|fabric|conformance|socket)$' || outcome=1
  cmake --build build/tsan-whole --target ucxio-{unit,device,fabric,conformance}-tests &&
    setarch "$(uname -m)" -R tests/support/run/run_ctest.sh build/tsan-whole '^(unit|device|fabric|conformance|socket)$' || outcome=1
  return $outcome
}

# Built once, with the system's UCX; the newest is loaded in its place. Where UCX ends a process by itself, the cases are
# left out, and docs/how-to/plain-ucx.md says so.
deaths() {
  local outcome=0
  # Few at a time: peers that have UCX alone never sleep, and each case has a limit of ten minutes.
  local -x UCXIO_DEATHS=50 UCXIO_TEST_JOBS=2 UCXIO_CASES='*Plain*Death*:*PlainUserThatStops*'
  newest_ucx && cmake --preset dev &&
    cmake --build build/dev --target ucxio-{process-tests,test-peer,plain-peer,plain-user} ucxio-loaded-ucx || return 1
  tests/support/run/run_ctest.sh build/dev '^process$' || outcome=1
  (
    export LD_LIBRARY_PATH=$wheel/lib UCX_MEM_BISTRO_GRACE_DURATION=1ms
    build/dev/bin/ucxio-loaded-ucx "$(tests/support/run/newest_ucx.sh --version)" &&
      tests/support/run/run_ctest.sh build/dev '^process$'
  ) || outcome=1
  return $outcome
}

fuzz() {
  cmake -G Ninja -S . -B build/fuzz -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Debug -DUCXIO_BUILD_FUZZERS=ON \
    -DUCXIO_BUILD_TESTS=OFF -DUCXIO_BUILD_EXAMPLES=OFF -DUCXIO_BUILD_BENCHMARKS=OFF -DUCXIO_BUILD_DOCS=OFF \
    -DUCXIO_BUILD_TOOLS=ON && cmake --build build/fuzz --target ucxio-fuzzers && [ -s build/fuzz/fuzzers.txt ] || return 1
  # shellcheck disable=SC2016 # the inner shell's
  xargs -n 1 -P 2 bash -c 'mkdir -p build/fuzz/corpus-$1
    build/fuzz/bin/ucxio-fuzz-$1 -max_total_time=600 -max_len=4096 -artifact_prefix=build/fuzz/$1- \
      build/fuzz/corpus-$1 >build/fuzz/$1.log 2>&1 || { tail -n 60 build/fuzz/$1.log; exit 1; }' fuzz <build/fuzz/fuzzers.txt
}

busy=() # loops in everybody's way
end_busy() { [ ${#busy[@]} = 0 ] || kill "${busy[@]}" 2>/dev/null; }
trap end_busy EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

repeat() {
  local round outcome=0
  local -x UCXIO_EXPECTED_SKIPS=$PWD/tests/support/run/expected_skips.txt
  for round in 1 2 3 4 5 6 7 8 9 10; do
    if [ "$round" = 6 ]; then
      for _ in $(seq "$(nproc)"); do
        (while kill -0 $$ 2>/dev/null; do for _ in {1..100000}; do :; done; done) &
        busy+=($!)
      done
    fi
    echo "== round $round"
    tests/run.sh --again || outcome=1
  done
  end_busy
  busy=()
  return $outcome
}

rdma() { tests/run-rdma.sh --whole; }
mutants() { newest_ucx && tests/support/mutants/mutate.py; }
# The stable interface (abi3) needs Python 3.12: where there is none, the one of Debian 13 makes that wheel.
wheels() {
  local interpreter outcome=0 stable=no
  for interpreter in python3 python3.12 python3.13 python3.14; do
    command -v $interpreter >/dev/null || continue
    tests/support/run/python_wheels.sh $interpreter || outcome=1
    $interpreter -c 'import sys; sys.exit(sys.version_info < (3, 12))' && stable=yes
  done
  [ $stable = yes ] || tests/support/run/in_debian.sh trixie "cmake/setup.sh python" tests/support/run/python_wheels.sh || outcome=1
  return $outcome
}
# By GCC, whose runtime is a library: Python has it loaded first, with that of C++, whose exceptions it watches.
python-asan() {
  local python
  python=$(tests/support/run/python_venv.sh) || return 1
  cmake --preset asan -B build/asan-python -DCMAKE_CXX_COMPILER=g++ -DUCXIO_SANITIZE=address -DUCXIO_BUILD_PYTHON=ON \
    -DPython_EXECUTABLE="$python" && cmake --build build/asan-python --target ucxio-python || return 1
  LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libstdc++.so)" \
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 tests/support/run/run_python.sh build/asan-python "$python" 0/1
}
debian12() { tests/support/run/in_debian.sh bookworm examples/quickstart.sh tests/run.sh; }
debian13() { tests/support/run/in_debian.sh trixie examples/quickstart.sh tests/run.sh; }

steps=("$@")
[ $# -gt 0 ] || steps=(newest whole deaths fuzz repeat rdma mutants wheels python-asan debian12 debian13)
for step in "${steps[@]}"; do
  case $step in
    newest | whole | deaths | fuzz | repeat | rdma | mutants | wheels | python-asan | debian12 | debian13) ;;
    *) sed -n '2,14s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done

cmake/setup.sh ci
summary=() failed=0
for step in "${steps[@]}"; do
  echo "=== $step"
  begin=$SECONDS verdict=passed
  $step || verdict=FAILED failed=1
  summary+=("$(printf '%-11s %-7s %3d min' "$step" $verdict $(((SECONDS - begin) / 60)))")
done
printf '%s\n' "=== summary" "${summary[@]}"
exit $failed
