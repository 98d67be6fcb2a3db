#!/bin/sh
# Carries a directory to another machine without storing it on the way: what `tar | nc` does, but
# that a transfer that was cut off is an error on both sides. Both ends run here.
#   tar_pipe.sh UCXIO DIRECTORY
set -eu
ucxio=$(command -v -- "$1") || { echo "tar_pipe: there is no program $1" >&2; exit 1; }
source=$2
[ -d "$source" ] || { echo "tar_pipe: there is no directory $source" >&2; exit 1; }
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT

# The receiving end listens, and says what to call at the other end: a person would copy that line.
(
  code=0
  "$ucxio" pipe receive 2>"$there/told" >"$there/archive" || code=$?
  echo $code >"$there/code"
) &
until grep -q :// "$there/told" 2>/dev/null; do
  [ ! -e "$there/code" ] || { cat "$there/told" >&2; exit 1; } # it could not listen
  sleep 0.05
done
url=$(sed -n 's/.* \(ucx[^ ]*:\/\/.*\)/\1/p' "$there/told")

tar -C "$source" -cf - . | "$ucxio" pipe send "$url"
wait
test "$(cat "$there/code")" = 0
mkdir "$there/copy"
tar -C "$there/copy" -xf "$there/archive"
diff -r "$source" "$there/copy"
echo "the copy is the same"
