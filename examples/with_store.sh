#!/usr/bin/env bash
# Serves a writable store of 1000 files, and pipes, with the tool, and runs a program with the server's URL.
#   with_store.sh UCXIO PROGRAM
set -euo pipefail
ucxio=$1 program=$2

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for i in {1000..1999}; do echo "file $i" >"$folder/file-$i"; done
coproc server { exec "$ucxio" serve --quiet --socket --pipes --writable --store "$folder"; }
pid=$server_PID
trap 'kill $pid 2>/dev/null && wait $pid || true; rm -rf "$folder"' EXIT
read -r -t 30 -u "${server[0]}" url || { echo "with_store: no server" >&2; exit 1; }
told=$("$program" "$url") || { echo "$told" >&2; exit 1; }
echo "$told"
[ "$told" = "1000 names, 64 read, 2 pipes " ]
[ "$(cat "$folder/written")" = "written in a loop" ]
