#!/usr/bin/env bash
# Runs one part of the tests of the package for Python.
#   tests/support/run/run_python.sh BUILD PYTHON PART/PARTS [PYTEST-OPTION...]        PART counts from 0
# The files python/tests/test_*.py are dealt out, so that a new one is of some part. With $UCXIO_PASSED, a folder, a part
# is not run again within a week after it passed with the same package, tests, documents, libraries, UCX and variables.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
cd "$(dirname "$0")/../../.."
build=$(realpath -e "$1") python=$2 part=${3%/*} parts=${3#*/}
shift 3

# The longest first, so that all parts take about the same time: dealt out there and back. A name is not listed twice.
longest=(hardening ucp fsspec_abstract aio_cancelled exit aio region ucp_processes ucp_in_flight aio_lifetimes aio_pipes fsspec
  ucp_lifetimes documents waiting tutorial)
mapfile -t files < <(cd python && { printf 'tests/test_%s.py\n' "${longest[@]}"; LC_ALL=C ls tests/test_*.py; } | awk '!seen[$0]++')
chosen=()
for ((at = 0; at < ${#files[@]}; ++at)); do
  place=$((at % (2 * parts)))
  [ $((place < parts ? place : 2 * parts - 1 - place)) != "$part" ] || chosen+=("${files[at]}")
done
[ ${#chosen[@]} -gt 0 ] || { echo "part $part of $parts has no file" >&2; exit 2; }

export PYTHONPATH=$build/python UCX_HANDLE_ERRORS=none PYTHONDONTWRITEBYTECODE=1
run=(env -C python "$python" -P -m pytest -q -p no:cacheprovider -o faulthandler_timeout=120 --durations=10 "$@"
  "${chosen[@]}")
[ -n "${UCXIO_PASSED:-}" ] || exec "${run[@]}"

# What the outcome depends on besides files.
facts=$build/python-facts.$part
{
  "$python" -c 'import sys; print(sys.version)'
  cat "$(dirname "$(dirname "$python")")/packages"
  env | grep -E '^(UCX|LD_|LC_|LANG|PYTHON)' | grep -vE '^UCXIO_(PASSED|PROGRESS|EXPECTED_SKIPS|CASES)=' | sort
  ulimit -a
  uname -a
  nproc
  id -u
  ls /sys/class/net
} >"$facts"
exec tests/support/run/unless_unchanged.sh --days 7 "$UCXIO_PASSED" "python.$part" "$facts" \
  python/{examples,pyproject.toml,tests,ucxio} README.md docs tests/support/run "$build"/python/ucxio/*.so "$build"/lib/*.so* \
  "$build/bin/ucxio" ${UCXIO_LIBUCX:+"$UCXIO_LIBUCX"} -- "${run[@]}"
