#!/usr/bin/env bash
# Runs tests of a build by ctest, shows how far they are, and says of their cases how they ended.
#   tests/support/run/run_ctest.sh [--all-run] BUILD LABELS [CTEST-OPTION...]        LABELS: a regular expression
# Closes with ctest's last lines. Fails if a test failed, if none ran, or if a case of them did not run; with --all-run
# also if ctest says of a test that it was skipped. $UCXIO_CASES, a filter of GoogleTest's, leaves only some cases.
set -uo pipefail
all_run=0
if [ "${1:-}" = --all-run ]; then all_run=1 && shift; fi
[ $# -ge 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
build=$(realpath -e "$1") || exit 2
labels=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
jobs=${UCXIO_TEST_JOBS:-$((3 * $(nproc)))} # the tests wait more than they work

# Prints how far the tests are, until it is ended.
show_progress() { # FILE TOTAL
  local begin=$SECONDS letters failed sleeper
  trap 'kill $sleeper 2>/dev/null; exit' TERM
  while :; do
    sleep 10 &
    sleeper=$!
    wait $sleeper
    letters=$(<"$1")
    failed=${letters//[!f]/}
    printf '    %d of %d cases done, %d failed, %d min %d s\n' \
      ${#letters} "$2" ${#failed} $(((SECONDS - begin) / 60)) $(((SECONDS - begin) % 60))
  done
}

rm -rf "$build/tests/results" "$build/tests.log"
if [ -n "${UCXIO_CASES:-}" ]; then echo "Only these cases: $UCXIO_CASES"; fi
total=$(ctest --test-dir "$build" -L "$labels" "$@" --show-only=json-v1 |
  "$here/report_cases.py" --expect "$build/tests/expected") || exit 1
export UCXIO_PROGRESS=$build/progress
: >"$UCXIO_PROGRESS"
show_progress "$UCXIO_PROGRESS" "$total" &
watcher=$!
trap 'kill $watcher 2>/dev/null' EXIT

outcome=0
ctest --test-dir "$build" -L "$labels" "$@" -j$jobs --output-on-failure --no-tests=error | tee "$build/tests.log" ||
  outcome=1
kill $watcher
wait $watcher 2>/dev/null
if [ "$total" -gt 0 ]; then
  "$here/report_cases.py" --of "$build/tests/expected" --slowest 20 "$build/tests/results" || outcome=1
elif [ -n "${UCXIO_CASES:-}" ]; then
  echo "no case has a name like $UCXIO_CASES"
  outcome=1
fi
if [ $all_run = 1 ] && grep -E '\*\*\*Skipped|\*\*\*Not Run' "$build/tests.log"; then
  echo "these tests did NOT RUN"
  outcome=1
fi
# Here is what is looked for at the end.
sed -n '/^[0-9]*% tests passed/,$p' "$build/tests.log"
exit $outcome
