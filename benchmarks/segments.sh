#!/usr/bin/env bash
# Measures what the size of TCP's segments brings, over the loopback interface: one stream, the
# latency of 8 bytes, 100 clients that read at once, and the memory of a server for each of them; and
# what UCX's rendezvous brings by hand beside eager messages. They are the tables of docs/how-to/tuning.md,
# "Use less memory for connections".
#   benchmarks/segments.sh [ROUNDS [SIZE...]]
# Each round goes through all sizes (64k 256k 1m 4m unless given), and the table has the medians.
# REQUIRES: build/release/bin/stream_benchmark and server_benchmark (benchmarks/run.sh builds them).
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${1:-5}
shift || true
sizes=("$@")
[ ${#sizes[@]} -gt 0 ] || sizes=(64k 256k 1m 4m)
measured=$(mktemp)
trap 'rm -f "$measured"' EXIT

run() { # SIZE PROGRAM FILTER
  UCX_TCP_TX_SEG_SIZE=$1 UCX_TCP_RX_SEG_SIZE=$1 build/release/bin/"$2" --benchmark_filter="$3"
}
for ((round = 1; round <= rounds; ++round)); do
  for size in "${sizes[@]}"; do
    {
      run "$size" stream_benchmark '^pass/tcp/(read/1MiB|seek.read/8B)/ucx'
      run "$size" server_benchmark '^ratio/server/(memory of a connection|100 busy|.*rendezvous)'
    } | sed "s/^/$size /" >>"$measured"
    echo "round $round of $rounds: $size" >&2
  done
done
awk -v sizes="${sizes[*]}" '
  function median(text,   values, count, i, j, kept) {
    count = split(text, values, " ")
    for (i = 2; i <= count; ++i) {
      kept = values[i]
      for (j = i - 1; j > 0 && values[j] + 0 > kept + 0; --j) values[j + 1] = values[j]
      values[j + 1] = kept
    }
    return values[int((count + 1) / 2)] + 0
  }
  $2 ~ /^tcp.read.1MiB/ { stream[$1] = stream[$1] " " $(NF - 1) }
  $2 ~ /^tcp.seek/ { latency[$1] = latency[$1] " " $(NF - 1) }
  $2 == "server/1" && $5 == "rendezvous" { met[$1] = met[$1] " " $6; eager[$1] = eager[$1] " " $7 }
  $2 == "server/100" && $5 == "rendezvous" {
    met_all[$1] = met_all[$1] " " $6
    eager_all[$1] = eager_all[$1] " " $7
  }
  / busy connections/ { memory[$1] = memory[$1] " " $5; together[$1] = together[$1] " " $(NF - 2) }
  END {
    print "| segment | one stream | 8 bytes | 100 clients, together | a connection, all of them busy |"
    print "| --- | --- | --- | --- | --- |"
    count = split(sizes, each, " ")
    for (i = 1; i <= count; ++i) {
      size = each[i]
      printf "| %s | %.1f GB/s | %.1f us | %.1f GB/s | %.0f KiB |\n", size, median(stream[size]),
             1 / median(latency[size]), median(together[size]), median(memory[size])
    }
    print ""
    print "| segment | eager | rendezvous | 100 connections, eager | rendezvous |"
    print "| --- | --- | --- | --- | --- |"
    for (i = 1; i <= count; ++i) {
      size = each[i]
      printf "| %s | %.1f GB/s | %.1f GB/s | %.1f GB/s | %.1f GB/s |\n", size, median(eager[size]),
             median(met[size]), median(eager_all[size]), median(met_all[size])
    }
  }' "$measured"
