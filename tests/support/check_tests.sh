#!/usr/bin/env bash
# Every test that is written is one that runs: its file is listed under the program of its folder.
#   check_tests.sh FOLDER-OF-TESTS
set -euo pipefail
cd "$1"
status=0
for program in unit fabric conformance process tool; do
  listed=$(awk -v program="$program" '
    $1 == program { inside = 1 }
    inside && /\)/ { inside = 0 }
    inside { print $1 }
    /set\((unit|fabric)_tests_with_boost/ { for (i = 2; i <= NF; ++i) print $i }
    /^ *[a-z_]+_test\.cpp\)?$/ && !inside { print $1 }' CMakeLists.txt | tr -d ')')
  for file in "$program"/*_test.cpp; do
    if ! grep -qx "$(basename "$file")" <<<"$listed"; then
      echo "$file is not built: list it in tests/CMakeLists.txt"
      status=1
    fi
  done
done
exit $status
