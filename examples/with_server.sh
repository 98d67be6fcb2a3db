#!/usr/bin/env bash
# Serves FILE with the tool, and runs a program while it is served; "URL" among the program's
# arguments becomes the file's URL.
#   with_server.sh UCXIO FILE PROGRAM [ARGUMENT...]
set -euo pipefail
ucxio=$1 file=$2 program=$3
shift 3

coproc server { exec "$ucxio" serve --quiet "the file=$file"; }
pid=$server_PID
trap 'kill $pid 2>/dev/null && wait $pid || true' EXIT
read -r -t 30 -u "${server[0]}" url || { echo "with_server: no server" >&2; exit 1; }
arguments=()
for argument; do
  if [ "$argument" = URL ]; then argument=$url/the%20file; fi
  arguments+=("$argument")
done
"$program" "${arguments[@]}"
