#!/usr/bin/env bash
# Which versions of UCX connect with which: serves a file with each, by URL and by worker address, and reads it with
# each. Prints a line a pair, "SERVER CLIENT by-URL by-address", each "yes" or "no", and what clients complain of to
# the standard error.
#
# usage: ucx_pairs.sh UCXIO PREFIX|system...
#   UCXIO    the tool, built with the oldest of these versions
#   PREFIX   of an installed UCX, as of a wheel libucx-cu13: .../site-packages/libucx; system: the loader's own
set -u
tool=$1
shift
folder=$(mktemp -d)
serving=
trap '[ -z "$serving" ] || kill "$serving" 2>/dev/null; rm -rf "$folder"' EXIT
echo content >"$folder/file"

# Becomes the tool, with the UCX of a prefix.
with() {
  local prefix=$1
  shift
  if [ "$prefix" != system ]; then
    export LD_LIBRARY_PATH="$prefix/lib" UCX_MODULE_DIR="$prefix/lib/ucx" UCX_MEM_BISTRO_GRACE_DURATION=1ms
  fi
  exec "$tool" "$@"
}
version() { (with "$1" --version) | sed -n 's/.*UCX \([0-9.]*\).*/\1/p'; }
# Says whether the client of a prefix reads the file behind a URL.
reads() { [ "$( (with "$1" cat "$2"))" = content ] && echo yes || echo no; }

for server in "$@"; do
  (with "$server" serve --ucx --bind 127.0.0.1:0 --address-file "$folder/address" "file=$folder/file") \
    >"$folder/urls" 2>/dev/null &
  serving=$!
  for _ in $(seq 100); do
    [ -s "$folder/urls" ] && [ -e "$folder/address" ] && break
    sleep 0.1
  done
  url=$(sed -n 's|^\(ucx://[^ ]*\).*|\1|p' "$folder/urls" | head -n 1)
  for client in "$@"; do
    echo "$(version "$server") $(version "$client") $(reads "$client" "$url/file")" \
      "$(reads "$client" "ucx+file://$folder/address/file")"
  done
  kill "$serving" 2>/dev/null || echo "the server of $server has ended" >&2
  wait "$serving" 2>/dev/null
  serving=
  rm -f "$folder/address" "$folder/urls"
done
