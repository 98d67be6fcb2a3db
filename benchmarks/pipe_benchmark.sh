#!/usr/bin/env bash
# Compares `ucxio pipe` with nc and mbuffer over TCP of the loopback interface: one file in memory to a
# reader that throws it away, from and to files, and from and to pipes. The contenders take turns; told
# are medians, and ratios of medians of the same passes.
#   benchmarks/pipe_benchmark.sh [UCXIO [MIB [PASSES]]]
# Goes on, and says so, without a contender that is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."

ucxio=${1:-build/release/bin/ucxio}
mib=${2:-2048}
passes=${3:-7}
folder=$(mktemp -d /dev/shm/ucxio-pipe-XXXXXX)
trap 'rm -rf "$folder"' EXIT
head -c "${mib}M" /dev/urandom >"$folder/input"
port=$((20000 + RANDOM % 10000))

# Each has a reader, from $1 on, that listens, and a sender.
read_ucxio() { "$ucxio" pipe receive --quiet --bind "127.0.0.1:$1"; }
send_ucxio() { "$ucxio" pipe send "ucx://127.0.0.1:$1/pipe"; }
read_nc() { nc -l 127.0.0.1 "$1" </dev/null; }
send_nc() { nc -N 127.0.0.1 "$1"; }
read_mbuffer() { mbuffer -q -s 1M -m 64M -I "127.0.0.1:$1"; }
send_mbuffer() { mbuffer -q -s 1M -m 64M -O "127.0.0.1:$1"; }

wait_for() { # PORT: until somebody listens
  for _ in $(seq 200); do
    if ss -ltn "sport = :$1" | grep -q LISTEN; then return; fi
    sleep 0.02
  done
  echo "nobody listens on port $1" >&2
  return 1
}

# Seconds that one transfer takes.
measure() { # CONTENDER files|pipes
  port=$((port + 1))
  local begin end reader
  if [ "$2" = files ]; then
    "read_$1" $port >/dev/null &
  else
    "read_$1" $port | cat >/dev/null &
  fi
  reader=$!
  wait_for $port
  begin=$(date +%s%N)
  if [ "$2" = files ]; then
    "send_$1" $port <"$folder/input"
  else
    cat "$folder/input" | "send_$1" $port
  fi
  wait $reader
  end=$(date +%s%N)
  echo $((end - begin))
}

median() { sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }
rate() { awk -v bytes=$((mib << 20)) -v time="$1" 'BEGIN { printf "%.2f", bytes / time }'; }

contenders=(ucxio)
for other in nc mbuffer; do
  if command -v $other >/dev/null; then
    contenders+=($other)
  else
    echo "Without $other: it is not installed." >&2
  fi
done

for way in files pipes; do
  for _ in $(seq "$passes"); do
    for each in "${contenders[@]}"; do measure "$each" $way >>"$folder/$each.$way"; done
  done
  ours=$(median <"$folder/ucxio.$way")
  for each in "${contenders[@]}"; do
    theirs=$(median <"$folder/$each.$way")
    ratio=$(awk -v ours="$ours" -v theirs="$theirs" 'BEGIN { printf "%.2f", theirs / ours }')
    printf '%-6s %-8s %6s GB/s   ucxio is %s times as fast\n' $way "$each" "$(rate "$theirs")" "$ratio"
  done
done
