#!/usr/bin/env bash
# Builds ucxio and shows it at work: one process holds a file in its memory; others read that memory
# as a std::istream, in pieces of 1 MiB and line by line, and write a report back.
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
[ -x "$build/bin/quickstart_reader" ] || echo "Building, which takes a minute or two the first time"
quietly cmake --preset release -B "$build" -DUCXIO_BUILD_EXAMPLES=ON -DUCXIO_BUILD_TESTS=OFF \
  -DUCXIO_BUILD_BENCHMARKS=OFF -DUCXIO_BUILD_DOCS=OFF
quietly cmake --build "$build" --target quickstart_owner quickstart_reader

# After the installation, which may have brought the largest one.
[ -n "$file" ] || file=$(largest_file)
work=$(mktemp -d)
owner=
leave() {
  if [ -n "$owner" ]; then
    kill "$owner" 2>/dev/null || true
    wait "$owner" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

size=$(stat -c %s -- "$file")
echo "File     $file, $size bytes"
"$build/bin/quickstart_owner" "$file" "$work/card" >"$work/owner.out" &
owner=$!
for ((tries = 0; ; ++tries)); do
  [ ! -d "$work/card" ] || break
  kill -0 "$owner" 2>/dev/null || { owner=; fail "the owner ended early"; }
  [ "$tries" -lt 1200 ] || fail "the owner was not ready after two minutes"
  sleep 0.1
done
echo "Owner    process $owner holds it in its memory"

expected=$(sha256sum <"$file") || fail "sha256sum failed"
echo "Digest   ${expected%% *}  of the file"
for how in pieces lines; do
  output=$("$build/bin/quickstart_reader" "$work/card" $how 2>"$work/reader.err" | sha256sum) ||
    { cat "$work/reader.err" >&2; fail "reading by $how failed"; }
  sed 's/^/Reader   /' "$work/reader.err"
  echo "Digest   ${output%% *}  of what was read by $how"
  [ "$output" = "$expected" ] || fail "what was read by $how is not what the owner has"
done

kill "$owner" 2>/dev/null || { owner=; fail "the owner ended early"; }
wait "$owner" || { owner=; fail "the owner did not end well"; }
owner=
sed 's/^/Owner    /' "$work/owner.out"
grep -q "memory: $(wc -l <"$file") lines," "$work/owner.out" ||
  fail "the report does not say $(wc -l <"$file") lines, which is what wc counts"
echo "All digests are equal, and wc agrees with the report."
