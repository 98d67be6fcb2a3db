#!/usr/bin/env bash
# Fails where the table of rows in docs/coming-from.md and the tests differ: where a row names no
# test, or one that is not there, and where a conformance test is not named in each of its rows.
#   check_rows.sh [PROJECT_DIR]
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"
page=docs/coming-from.md
failures=0

complain() { # WHERE WHAT
  echo "$1: $2" >&2
  failures=$((failures + 1))
}
# "Suite.Name" of each test of a file.
tests_of() { # FILE
  grep -ozE '\bTEST(_[PF])?\([[:space:]]*\w+,[[:space:]]*\w+[[:space:]]*\)' "$1" | tr -d '[:space:]' |
    tr '\0' '\n' | sed -E 's/^TEST(_[PF])?\(//; s/,/./; s/\)$//'
}
# LINE ROW FILE TEST for each test that the page names: in the rows, and (row "-") of no row. "-" is what
# is not said: a file that stands alone has "-" as its test, and a row that says that it is not there
# has "none" as its file. Files of tests/conformance go by their names, others by their paths.
named_tests() {
  awk -F'|' '
    function tell(row, said,    parts, count, file, found, i) {
      file = "-"
      count = split(said, parts, "`")
      for (i = 2; i <= count; i += 2) {
        if (parts[i] ~ /_test\.cpp$/) {
          file = (parts[i] ~ /\// ? "" : "tests/conformance/") parts[i]
          if (parts[i + 1] !~ /^: *$/) { print line, row, file, "-"; found = 1 }
        } else if (parts[i] ~ /^([A-Za-z0-9_]+\.)?[A-Z][A-Za-z0-9_]*$/) {
          print line, row, file, parts[i]
          found = 1
        }
      }
      if (!found) print line, row, said ~ /not there/ ? "none" : "-", "-"
    }
    /^## / { within = /^## Rows and their tests/ }
    !within { next }
    /^\| [A-Z][0-9]+ \|/ { line = NR; row = $2; gsub(/ /, "", row); tell(row, $(NF - 1)) }
    /^Tests of no row/ { line = NR; rest = " " }
    rest != "" && NF { rest = rest $0 " " }
    rest != "" && !NF { tell("-", rest); rest = "" }
    END { if (rest != "") tell("-", rest) }' "$page"
}

declare -A known=() # "FILE Suite.Name" and "FILE Name"
declare -A named=() # "ROW FILE Name"
conformance=()
for file in tests/*/*_test.cpp; do
  while read -r test; do
    known["$file $test"]=1
    known["$file ${test#*.}"]=1
    if [[ $file == tests/conformance/* ]]; then conformance+=("$file ${test#*.}"); fi
  done < <(tests_of "$file")
done

rows=0
while read -r line row file test; do
  if [ "$row" != - ]; then rows=$((rows + 1)); fi
  if [ "$file" = none ]; then continue; fi
  if [ "$file" = - ]; then
    complain "$page:$line" "row $row names no test in a file"
  elif [ ! -e "$file" ]; then
    complain "$page:$line" "there is no $file"
  elif [ "$test" != - ] && [ -z "${known["$file $test"]:-}" ]; then
    complain "$page:$line" "there is no test $test in $file"
  fi
  named["$row $file ${test#*.}"]=1
done < <(named_tests)
if [ $rows = 0 ]; then complain "$page" "there is no table of rows"; fi

for each in "${conformance[@]}"; do
  read -r file test <<<"$each"
  ids=$test
  while [[ $ids =~ ^([A-Z][0-9]+)_(.*)$ ]]; do
    ids=${BASH_REMATCH[2]}
    if [ -z "${named["${BASH_REMATCH[1]} $file $test"]:-}" ]; then
      complain "$file" "$test is not named in row ${BASH_REMATCH[1]} of $page"
    fi
  done
done

[ $failures = 0 ] || { echo "$failures differences between rows and tests" >&2; exit 1; }
