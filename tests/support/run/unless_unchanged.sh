#!/usr/bin/env bash
# Runs COMMAND, unless it has passed before with the same inputs, files and folders, and the same packages of the system.
#   tests/support/run/unless_unchanged.sh [--days N] KEPT NAME INPUT... -- COMMAND...
# The folder $UCXIO_PASSED, or else KEPT, holds what has passed; with --days N, what passed longer ago runs again, so that
# a race gets another chance to show. Where no digest can be had, COMMAND runs. Ends as COMMAND does.
set -uo pipefail
newer=()
if [ "$1" = --days ]; then newer=(-mtime "-$2") && shift 2; fi
kept=${UCXIO_PASSED:-$1}
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
elif [ -n "$(find "$kept/$name-$key" "${newer[@]}" 2>/dev/null)" ]; then
  echo "unchanged since it passed, $(date -r "$kept/$name-$key" '+%F %T')"
else
  "$@" && mkdir -p "$kept" && touch "$kept/$name-$key"
fi
