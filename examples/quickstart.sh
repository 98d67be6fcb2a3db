#!/usr/bin/env bash
# Builds ucxio and shows it at work: one process serves a file; others read it by URL, with the tool
# and with a C++ program that calls std::getline. Compares digests and line counts.
#   examples/quickstart.sh [FILE]
# Without FILE: the largest file of at most 128 MiB among the system's programs and libraries.
# Installs what the build needs if it is missing (Debian, as root or with sudo). Everything it makes
# is below build/, and nothing is left running.
set -euo pipefail

fail() {
  echo "quickstart: $*" >&2
  exit 1
}

# A command whose output matters only when it fails.
quietly() {
  "$@" >"$log" 2>&1 || { tail -n 40 "$log" | cut -c 1-300 >&2; fail "failed: $*"; }
}

largest_file() {
  # Some folders may be missing or closed to us.
  { find /usr/lib /usr/libexec /usr/bin -xdev -type f -readable -size -129M -printf '%s %p\n' 2>/dev/null || true; } |
    sort -n | tail -n 1 | cut -d ' ' -f 2-
}

# SINCE, in nanoseconds: how long ago that was, and what rate that is for the file.
rate_since() {
  awk -v begin="$1" -v end="$(date +%s%N)" -v bytes="$size" \
    'BEGIN { t = (end - begin) / 1e9; printf "%.3f MB in %.3f s, %.3f GB/s", bytes / 1e6, t, bytes / 1e9 / t }'
}

[ $# -le 1 ] || fail "usage: examples/quickstart.sh [FILE]"
file=${1:-}
if [ $# -eq 1 ]; then
  [ -f "$file" ] || fail "there is no file \"$file\""
  [ -r "$file" ] || fail "\"$file\" can not be read"
  [ -s "$file" ] || fail "\"$file\" is empty"
  file=$(realpath -- "$file")
fi

cd "$(dirname "$0")/.."
build=build/quickstart
mkdir -p "$build"
log=$build/quickstart.log

cmake/setup.sh build
[ -x "$build/bin/three_lines" ] || echo "Building: about 4 minutes on two cores the first time ($log tells how far it is)"
quietly cmake --preset release -B "$build" -DUCXIO_PRECOMPILE=ON -DUCXIO_UNITY=ON -DUCXIO_BUILD_TOOLS=ON \
  -DUCXIO_BUILD_EXAMPLES=ON -DUCXIO_BUILD_TESTS=OFF -DUCXIO_BUILD_BENCHMARKS=OFF \
  -DUCXIO_BUILD_DOCS=OFF
quietly cmake --build "$build" --target ucxio-tool ucxio-tool-texts example-three_lines

# After the installation, which may have brought the largest one.
[ -n "$file" ] || file=$(largest_file)
work=$(mktemp -d)
server=
leave() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

size=$(stat -c %s -- "$file")
echo "File     $file, $size bytes"
mkfifo "$work/says"
"$build/bin/ucxio" serve "file=$file" >"$work/says" 2>"$work/server.err" &
server=$!
# The first line is there when everything can be read.
read -r -t 60 url <"$work/says" || { cat "$work/server.err" >&2; fail "the server did not start"; }
echo "Server   process $server: ucxio serve \"file=$file\" says $url"

expected=$(sha256sum <"$file") || fail "sha256sum failed"
echo "SHA-256  ${expected%% *}  of the file"
output=$("$build/bin/ucxio" cat "$url/file" | sha256sum) || fail "ucxio cat failed"
echo "SHA-256  ${output%% *}  of what \"ucxio cat $url/file\" wrote"
[ "$output" = "$expected" ] || fail "what was read is not what is served"
begin=$(date +%s%N)
"$build/bin/ucxio" cat "$url/file" >/dev/null || fail "ucxio cat failed"
echo "Reader   ucxio cat, 1 MiB pieces:      $(rate_since "$begin")"

begin=$(date +%s%N)
counted=$("$build/bin/three_lines" "$url/file") || fail "three_lines failed"
echo "Reader   three_lines, with getline:    $(rate_since "$begin")"
echo "Lines    $counted"
# wc counts newlines; the last line may go without.
lines=$(wc -l <"$file")
[ "$(tail -c 1 -- "$file" | od -An -t x1)" = " 0a" ] || lines=$((lines + 1))
[ "$counted" = "$lines lines, $size bytes" ] || fail "three_lines counts \"$counted\", and wc $lines lines"

kill "$server" || { server=; fail "the server ended early"; }
wait "$server" || { server=; fail "the server did not end well"; }
server=
echo "Server   ended. The digests are equal, and wc agrees with the count of lines."
