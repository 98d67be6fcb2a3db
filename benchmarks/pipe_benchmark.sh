#!/usr/bin/env bash
# Compares `ucxio pipe`, as it is within one host and by messages, with UCX by hand (raw_pipe), nc and mbuffer
# over TCP of the loopback interface: one file in memory to a reader that throws it away, from and to files, and
# from and to pipes. Readers run on core 0, senders on core 1. The contenders take turns; told are medians, and
# ratios of medians of the same passes.
#   benchmarks/pipe_benchmark.sh [FOLDER-OF-PROGRAMS [MIB [PASSES]]]
# Goes on, and says so, without a contender that is not there.
set -euo pipefail
cd "$(dirname "$0")/.."

programs=${1:-build/release/bin}
ucxio=$programs/ucxio raw_pipe=$programs/raw_pipe
mib=${2:-2048}
passes=${3:-7}
folder=$(mktemp -d /dev/shm/ucxio-pipe-XXXXXX)
trap 'rm -rf "$folder"' EXIT
head -c "${mib}M" /dev/urandom >"$folder/input"
port=$((20000 + RANDOM % 10000))

# Each has a reader, from $1 on, that listens, and a sender.
read_ucxio() { "$ucxio" pipe receive --ucx --quiet --bind "127.0.0.1:$1"; }
send_ucxio() { "$ucxio" pipe send "ucx://127.0.0.1:$1/pipe"; }
read_message() { UCXIO_TRANSFER_METHOD=message read_ucxio "$1"; }
send_message() { UCXIO_TRANSFER_METHOD=message send_ucxio "$1"; }
# By worker address, through a file; with the segments that ucxio chooses, over the same interface.
by_hand() {
  env UCX_TLS=tcp UCX_NET_DEVICES=lo UCX_LOG_LEVEL=fatal UCX_ZCOPY_THRESH=inf UCX_TX_SEG_SIZE=1m \
    UCX_TCP_TX_SEG_SIZE=1m UCX_TCP_RX_SEG_SIZE=1m "$raw_pipe" "$@"
}
read_raw() { by_hand receive "$folder/address.$1"; }
send_raw() { by_hand send "$folder/address.$1"; }
read_nc() { nc -l 127.0.0.1 "$1" </dev/null; }
send_nc() { nc -N 127.0.0.1 "$1"; }
read_mbuffer() { mbuffer -q -s 1M -m 64M -I "127.0.0.1:$1"; }
send_mbuffer() { mbuffer -q -s 1M -m 64M -O "127.0.0.1:$1"; }

wait_for() { # PORT: until somebody listens
  for _ in $(seq 200); do
    if [ -e "$folder/address.$1" ] || ss -ltn "sport = :$1" | grep -q LISTEN; then return; fi
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
    (taskset -pc 0 $BASHPID && "read_$1" $port) >/dev/null &
  else
    (taskset -pc 0 $BASHPID >/dev/null && "read_$1" $port) | cat >/dev/null &
  fi
  reader=$!
  wait_for $port
  begin=$(date +%s%N)
  if [ "$2" = files ]; then
    (taskset -pc 1 $BASHPID >/dev/null && "send_$1" $port) <"$folder/input"
  else
    cat "$folder/input" | (taskset -pc 1 $BASHPID >/dev/null && "send_$1" $port)
  fi
  wait $reader
  end=$(date +%s%N)
  echo $((end - begin))
}

median() { sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }
rate() { awk -v bytes=$((mib << 20)) -v time="$1" 'BEGIN { printf "%.2f", bytes / time }'; }

contenders=(ucxio message)
if [ -x "$raw_pipe" ]; then contenders+=(raw); else echo "Without $raw_pipe: it is not built." >&2; fi
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
  messages=$(median <"$folder/message.$way")
  for each in "${contenders[@]}"; do
    theirs=$(median <"$folder/$each.$way")
    ratios=$(awk -v ours="$ours" -v messages="$messages" -v theirs="$theirs" \
      'BEGIN { printf "%.2f times as fast, by messages %.2f", theirs / ours, theirs / messages }')
    printf '%-6s %-8s %6s GB/s   ucxio is %s\n' $way "$each" "$(rate "$theirs")" "$ratios"
  done
done
