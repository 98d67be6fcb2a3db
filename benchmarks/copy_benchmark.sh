#!/usr/bin/env bash
# Compares `ucxio cp` with what else copies files on one machine: one large file with `cp` and with
# what a stream reads, many small ones, from a server and to one, with an rsync daemon and with
# `tar | nc | tar`.
#   benchmarks/copy_benchmark.sh [--passes=N] [--size=MIB] [--files=N]
# REQUIRES: build/release/bin/ucxio, and room in /tmp and /dev/shm. The contenders take turns; the
# medians count, and the ratios. Goes without rsync or nc, and says so, where they are not there.
set -euo pipefail
cd "$(dirname "$0")/.."

passes=5 size=4096 files=10000
for argument; do
  case $argument in
    --passes=*) passes=${argument#*=} ;;
    --size=*) size=${argument#*=} ;;
    --files=*) files=${argument#*=} ;;
    *) sed -n '2,7s/^# *//p' "$0" >&2; exit 2 ;;
  esac
done
ucxio=$PWD/build/release/bin/ucxio
[ -x "$ucxio" ] || { echo "There is no $ucxio: build the preset release." >&2; exit 2; }

work=$(mktemp -d /tmp/ucxio-copy-XXXXXX) memory=$(mktemp -d /dev/shm/ucxio-copy-XXXXXX)
server='' daemon=''
clean() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
  rm -rf "$work" "$memory"
}
trap clean EXIT
trap 'exit 130' INT TERM HUP

mkdir "$work/one" "$work/many"
head -c "${size}M" /dev/urandom >"$work/one/large"
cat "$work/one/large" >/dev/null # into the page cache
for ((i = 0; i < files; ++i)); do
  mkdir -p "$work/many/$((i / 1000))"
  printf '%4096d' "$i" >"$work/many/$((i / 1000))/$i"
done

coproc serving {
  exec "$ucxio" serve --ucx --quiet --writable --store one="$work/one" --store many="$work/many" \
    --store into="$memory"
}
# shellcheck disable=SC2154 # bash sets it
server=$serving_PID
read -r url <&"${serving[0]}"
if command -v rsync >/dev/null; then
  port=$((20000 + RANDOM % 10000))
  printf 'use chroot = no\nuid = %s\n[many]\npath = %s\n[into]\npath = %s\nread only = no\n' \
    "$(id -u)" "$work/many" "$memory" >"$work/rsyncd.conf"
  rsync --daemon --no-detach --address=127.0.0.1 --port=$port --config="$work/rsyncd.conf" &
  daemon=$!
  sleep 1
else
  echo "Without rsync: it is not installed." >&2
fi

# Each copies into $memory, which is empty then.
large_cp() { cp "$work/one/large" "$memory/x"; }
large_cat() { "$ucxio" cat "$url/one/large" >/dev/null; }
large_ucxio() { "$ucxio" cp "$url/one/large" "$memory/x"; }
many_ucxio() { "$ucxio" cp -r "$url/many" "$memory/x"; }
many_rsync() { rsync -r "rsync://127.0.0.1:$port/many/" "$memory/x/"; }
stored_ucxio() { "$ucxio" cp -r "$work/many" "$url/into/x"; }
stored_rsync() { rsync -r "$work/many/" "rsync://127.0.0.1:$port/into/x/"; }
many_tar() {
  mkdir "$memory/x"
  tar -C "$work/many" -c . | nc -N -l 127.0.0.1 $((port + 1)) &
  local sender=$!
  until nc -d 127.0.0.1 $((port + 1)) 2>/dev/null | tar -C "$memory/x" -x 2>/dev/null; do sleep 0.01; done
  wait $sender
}

declare -A taken
measure() { # NAME
  rm -rf "$memory/x"
  local begin=$EPOCHREALTIME
  "$1"
  local end=$EPOCHREALTIME
  taken[$1]+="$(((${end/./} - ${begin/./}) / 1000)) "
}
median() { # NAME: of its milliseconds
  tr ' ' '\n' <<<"${taken[$1]}" | sed '/^$/d' | sort -n | sed -n "$(((passes + 1) / 2))p"
}
contenders=(large_cp large_cat large_ucxio many_ucxio stored_ucxio)
[ -z "$daemon" ] || contenders+=(many_rsync stored_rsync)
if command -v nc >/dev/null; then
  port=${port:-$((20000 + RANDOM % 10000))}
  contenders+=(many_tar)
else
  echo "Without tar | nc: nc is not installed." >&2
fi
for ((pass = 0; pass < passes; ++pass)); do
  for each in "${contenders[@]}"; do measure "$each"; done
done

echo "one file of $size MiB from the page cache to /dev/shm, and $files files of 4 KiB; medians of $passes:"
for each in "${contenders[@]}"; do printf '  %-12s %8d ms\n' "$each" "$(median "$each")"; done
slower=$(($(median large_cp) > $(median large_cat) ? $(median large_cp) : $(median large_cat)))
awk "BEGIN { printf \"ucxio cp: %.2f of the slower of cp and ucxio cat\", $slower / $(median large_ucxio) }"
compare() { # OURS THEIRS WORDS
  [ -n "${taken[$2]:-}" ] || return 0
  awk "BEGIN { printf \"; %.2f times as fast as $3\", $(median "$2") / $(median "$1") }"
}
compare many_ucxio many_rsync rsync
compare many_ucxio many_tar tar
compare stored_ucxio stored_rsync 'rsync to the daemon'
compare stored_ucxio many_tar 'tar, to the server'
echo
