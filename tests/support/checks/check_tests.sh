#!/usr/bin/env bash
# Every test that is written is one that runs: its file is listed under the program of its folder, by its path there.
#   check_tests.sh FOLDER-OF-TESTS
set -euo pipefail
cd "$1"
status=0
for program in unit device gpu fabric conformance process tool execution; do
  # Between "ucxio_add_tests(" and the program's name, or "set(PROGRAM_tests_with", and the ")".
  listed=$(awk -v program="$program" '
    { text = $0; sub(/#.*/, "", text) }
    text ~ /ucxio_add_tests\(/ { asked = 1 }
    asked && text ~ "(^|[( ])" program "( |\\)|$)" { inside = 1 }
    asked && text ~ /[a-z]/ && text !~ /ucxio_add_tests\($/ { asked = 0 }
    index(text, "set(" program "_tests_with") { inside = 1 }
    inside { n = split(text, words, /[ ()]+/); for (i = 1; i <= n; ++i) print words[i] }
    inside && text ~ /\)/ { inside = 0 }' CMakeLists.txt)
  while IFS= read -r file; do
    if ! grep -qxF "${file#"$program"/}" <<<"$listed"; then
      echo "$file is not built: list it in tests/CMakeLists.txt"
      status=1
    fi
  done < <(find "$program" -name '*_test.cpp' | sort)
done
exit $status
