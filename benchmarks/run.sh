#!/usr/bin/env bash
# Builds in Release, and compares the streams with UCX by hand and with std::ifstream, in turns.
#   benchmarks/run.sh [--passes=N] [--pass_seconds=S] [--benchmark_filter=REGEX]
# Prints a table of median ratios, the target beside each, and writes build/release/*_benchmark.json.
# Wants two cores that nobody else uses; docs/performance.md says how to read the figures.
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/release
log=$build/benchmarks.log
quietly() { "$@" >>"$log" 2>&1 || { tail -n 40 "$log" >&2; exit 1; }; }

cmake/setup.sh benchmarks
mkdir -p $build
: >$log
quietly cmake --preset release -DUCXIO_BUILD_BENCHMARKS=ON -DUCXIO_WITH_BOOST=ON \
  -DUCXIO_BUILD_TESTS=OFF -DUCXIO_BUILD_EXAMPLES=OFF -DUCXIO_BUILD_TOOLS=OFF -DUCXIO_BUILD_DOCS=OFF
programs=(stream_benchmark text_benchmark server_benchmark message_benchmark
  mapped_benchmark boost_benchmark)
quietly cmake --build $build --target "${programs[@]}"

read -r load _ </proc/loadavg
[ "${load%%.*}" = 0 ] || echo "The machine is busy (load $load): expect ratios that mean little." >&2

failed=0
for name in "${programs[@]}"; do
  $build/bin/$name --benchmark_out=$build/$name.json --benchmark_out_format=json "$@" || failed=1
done
exit $failed
