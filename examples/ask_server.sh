#!/usr/bin/env bash
# Runs small_server, asks it by the tool, and ends it.
#   ask_server.sh UCXIO SMALL_SERVER
set -euo pipefail
ucxio=$1 program=$2

coproc server { exec "$program"; }
pid=$server_PID
trap 'kill $pid 2>/dev/null && wait $pid || true' EXIT
exec {output}<&"${server[0]}" # bash closes its own when the server ends
read -r -t 30 -u "$output" url || { echo "ask_server: no server" >&2; exit 1; }
"$ucxio" ls "$url"
[ "$("$ucxio" ls --names "$url")" = $'etc/os-release\ntable' ]
"$ucxio" cat "$url/etc/os-release" | cmp - /etc/os-release
[ "$("$ucxio" cat "$url/table" --length 8 | od -An -t f8 | tr -d ' ')" = 0.5 ]
input=${server[1]}
exec {input}>&- # it serves until its input ends
read -r -t 30 -u "$output" told
echo "the server: $told"
wait "$pid"
trap - EXIT
