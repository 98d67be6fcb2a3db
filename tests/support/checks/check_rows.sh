#!/usr/bin/env bash
# Fails where tests/rows.txt and the tests differ: where an id from A1 to G9 is missing or stands
# twice, where a row names no test, or a file or test that does not exist, and where a conformance
# test is not named in each of its rows.
#   check_rows.sh [PROJECT_DIR]
set -euo pipefail
cd "${1:-$(dirname "$0")/../../..}"
list=tests/rows.txt
declare -A last=([A]=13 [B]=30 [C]=26 [D]=20 [E]=22 [F]=12 [G]=9)
failures=0

complain() { # WHERE WHAT
  echo "$1: $2" >&2
  failures=$((failures + 1))
}
# Sets `text` to TEXT without the spaces around it.
trim() { # TEXT
  text=${1#"${1%%[![:space:]]*}"}
  text=${text%"${text##*[![:space:]]}"}
}
# "Suite.Name" of each test of a file.
tests_of() { # FILE
  grep -ozE '\bTEST(_[PF])?\([[:space:]]*\w+,[[:space:]]*\w+[[:space:]]*\)' "$1" | tr -d '[:space:]' |
    tr '\0' '\n' | sed -E 's/^TEST(_[PF])?\(//; s/,/./; s/\)$//'
}

declare -A known=() # "FILE Suite.Name" and "FILE Name"
declare -A rows=()  # ID
declare -A named=() # "ID FILE Name"
conformance=()
while IFS= read -r file; do
  while read -r test; do
    known["$file $test"]=1
    known["$file ${test#*.}"]=1
    if [[ $file == tests/conformance/* ]]; then conformance+=("$file ${test#*.}"); fi
  done < <(tests_of "$file")
done < <(find tests -name '*_test.cpp' | sort)

check_place() { # WHERE ID FILE[: TEST, TEST...]
  local file tests test text
  trim "${3%%:*}"
  file=$text
  if [[ ! $file =~ ^(tests|examples)/ || ! -f $file ]]; then
    complain "$1" "$2: there is no test or example \"$file\""
    return
  fi
  if [[ $3 != *:* ]]; then return; fi
  IFS=, read -ra tests <<<"${3#*:}"
  if [ ${#tests[@]} = 0 ]; then complain "$1" "$2: no test behind \"$file:\""; fi
  for test in "${tests[@]}"; do
    trim "$test"
    test=$text
    named["$2 $file ${test#*.}"]=1
    if [ -z "${known["$file $test"]:-}" ]; then complain "$1" "$2: there is no test \"$test\" in $file"; fi
  done
}
check_row() { # WHERE ID NAME WHAT
  local places place text
  if [[ ! $2 =~ ^([A-G])([1-9][0-9]?)$ || ${BASH_REMATCH[2]} -gt ${last[${BASH_REMATCH[1]}]} ]]; then
    complain "$1" "\"$2\" is no id from A1 to G9"
    return
  fi
  if [ -n "${rows[$2]:-}" ]; then complain "$1" "$2 stands twice"; fi
  rows[$2]=1
  if [ -z "$3" ]; then complain "$1" "$2 has no name"; fi
  if [[ $4 == absent* ]]; then
    if [[ ! $4 =~ ^absent:\ .*[^[:space:]] ]]; then complain "$1" "$2: \"absent: \" and why"; fi
    return
  fi
  IFS=';' read -ra places <<<"$4"
  if [ ${#places[@]} = 0 ]; then complain "$1" "$2 names neither a test nor why it is absent"; fi
  for place in "${places[@]}"; do check_place "$1" "$2" "$place"; done
}

number=0
while IFS= read -r line || [ -n "$line" ]; do
  number=$((number + 1))
  if [[ -z $line || $line == \#* ]]; then continue; fi
  IFS='|' read -r id name what <<<"$line"
  trim "$id"
  id=$text
  trim "$name"
  name=$text
  trim "$what"
  check_row "$list:$number" "$id" "$name" "$text"
done <"$list"
for letter in "${!last[@]}"; do
  for ((i = 1; i <= last[$letter]; ++i)); do
    if [ -z "${rows[$letter$i]:-}" ]; then complain "$list" "there is no row $letter$i"; fi
  done
done

for each in "${conformance[@]}"; do
  read -r file test <<<"$each"
  ids=$test
  while [[ $ids =~ ^([A-Z][0-9]+)_(.*)$ ]]; do
    ids=${BASH_REMATCH[2]}
    if [ -z "${named["${BASH_REMATCH[1]} $file $test"]:-}" ]; then
      complain "$file" "$test is not named in row ${BASH_REMATCH[1]} of $list"
    fi
  done
done

[ $failures = 0 ] || { echo "$failures differences between rows and tests" >&2; exit 1; }
