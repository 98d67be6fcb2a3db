#!/usr/bin/env bash
# Runs COMMAND, unless it has passed before with the same inputs, files and folders, and the same packages of the system.
#   tests/support/run/unless_unchanged.sh KEPT NAME INPUT... -- COMMAND...
# KEPT is the folder that holds what has passed. Where no digest can be had, COMMAND runs. Ends as COMMAND does.
set -uo pipefail
kept=$1
name=$2
shift 2
inputs=()
while [ "$1" != -- ]; do inputs+=("$1") && shift; done
shift

digest() {
  { echo "$*" && dpkg-query -W && find "${inputs[@]}" -type f -not -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum; } |
    sha256sum | cut -c 1-32
}

if ! key=$(digest "$@"); then
  "$@"
elif [ -e "$kept/$name-$key" ]; then
  echo "unchanged since it passed, $(date -r "$kept/$name-$key" '+%F %T')"
else
  "$@" && mkdir -p "$kept" && touch "$kept/$name-$key"
fi
