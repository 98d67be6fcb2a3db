#!/usr/bin/env bash
# Tests that unless_unchanged.sh runs a command again where its input has changed, or where it has not passed, only.
set -uo pipefail
script=$(cd "$(dirname "$0")" && pwd)/unless_unchanged.sh
unset UCXIO_PASSED
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/in"
echo 1 >"$folder/in/file"

failed=0 options=()
runs() { # WHAT WANTED-STATUS WANTED-RUNS COMMAND
  local status=0
  : >"$folder/ran"
  "$script" "${options[@]}" "$folder/kept" name "$folder/in" -- bash -c "echo ran >>'$folder/ran'; $4" >/dev/null 2>&1 || status=$?
  [ "$status $(wc -l <"$folder/ran")" = "$2 $3" ] && return
  echo "FAILED: $1: ended with $status, ran $(wc -l <"$folder/ran") times" >&2
  failed=1
}

runs "a command that fails" 3 1 "exit 3"
runs "a command that failed before" 3 1 "exit 3"
runs "a command that is new" 0 1 true
runs "a command that has passed" 0 0 true
runs "another command" 0 1 ":"
echo 2 >"$folder/in/file"
runs "a command whose input has changed" 0 1 true
touch "$folder/in/new"
runs "a command with one more input" 0 1 true
options=(--days 7)
runs "a command that has passed today" 0 0 true
touch -d '9 days ago' "$folder"/kept/*
runs "a command that has passed some days ago" 0 1 true
runs "a command that has passed again" 0 0 true
options=()
UCXIO_PASSED=$folder/named runs "a command that has passed in another folder" 0 1 true
UCXIO_PASSED=$folder/named runs "a command that has passed in the folder that is named" 0 0 true
rm -r "$folder/in"
runs "a command whose input has gone" 0 1 true
runs "a command whose input is not there" 0 1 true
exit $failed
