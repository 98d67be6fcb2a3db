#!/usr/bin/env bash
# Builds in Release, and compares the streams with UCX by hand, bare sockets, Asio, std::ifstream, and
# the libraries beside which they stand, in turns; over the loopback interface and, where it may make
# some, between network namespaces of its own.
#   benchmarks/run.sh [--docs] [--passes=N] [--pass_seconds=S] [--benchmark_filter=REGEX]
# Prints tables of median ratios, the target beside each; writes build/release/results/NETWORK/*.json,
# report.md and plots. --docs also brings tables and plots into docs/explanation/performance.md, which says
# how to read them. Wants two cores that nobody else uses.
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/release
results=$build/results
log=$build/benchmarks.log
plotter=build/benchmarks-venv
quietly() { "$@" >>"$log" 2>&1 || { tail -n 40 "$log" >&2; exit 1; }; }

docs=()
if [ "${1:-}" = --docs ]; then
  docs=(--docs docs)
  shift
fi
cmake/setup.sh benchmarks
rm -rf $results # what is not measured this time is not reported
mkdir -p $results
: >$log
quietly cmake --preset release -DUCXIO_BUILD_BENCHMARKS=ON -DUCXIO_WITH_BOOST=ON \
  -DUCXIO_BUILD_TESTS=OFF -DUCXIO_BUILD_EXAMPLES=OFF -DUCXIO_BUILD_TOOLS=OFF -DUCXIO_BUILD_DOCS=OFF
over_a_network=(stream_benchmark latency_benchmark cpu_benchmark server_benchmark)
on_one_host=(carrier_benchmark key_benchmark crowd_benchmark flood_benchmark neighbour_benchmark connections_benchmark message_benchmark text_benchmark mapped_benchmark boost_benchmark store_benchmark)
quietly cmake --build $build --target "${over_a_network[@]}" "${on_one_host[@]}" stream_contender

read -r load _ </proc/loadavg
[ "${load%%.*}" = 0 ] || echo "The machine is busy (load $load): expect ratios that mean little." >&2

{
  printf '%s, commit %s, ' "$(date -u +%F)" "$(git describe --always --dirty 2>/dev/null || echo unknown)"
  printf 'UCX %s, ' "$(pkg-config --modversion ucx 2>/dev/null || echo unknown)"
  printf 'g++ %s, ' "$(c++ -dumpfullversion)"
  printf '%s cores of %s\n' "$(nproc)" "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
} >$results/made

failed=0
compare() { # NETWORK PROGRAM [ARGUMENT...]
  local network=$1 name=$2 within=()
  shift 2
  [ "$network" != namespaces ] || within=(benchmarks/namespaces.sh)
  mkdir -p "$results/$network"
  echo "$name, $network:"
  "${within[@]}" $build/bin/"$name" --benchmark_out="$results/$network/$name.json" \
    --benchmark_out_format=json "$@" || failed=1
}

for name in "${over_a_network[@]}" "${on_one_host[@]}"; do compare loopback "$name" "$@"; done
if benchmarks/namespaces.sh true; then
  for name in "${over_a_network[@]}"; do
    # Shared memory is the same as before.
    compare namespaces "$name" --benchmark_filter='^ratio/(tcp|latency|cpu|server)/' "$@"
  done
fi
# From 1.22 on UCX itself reads another process's memory: beside that, too.
newest=build/ucx-newest-venv
if { [ -x $newest/bin/pip ] || python3 -m venv $newest; } >>$log 2>&1 &&
  $newest/bin/pip install --quiet --no-deps --only-binary :all: 'libucx-cu13>=1.22' >>$log 2>&1; then
  libraries=$($newest/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/libucx/lib
  LD_LIBRARY_PATH=$libraries compare newest stream_benchmark "$@" --benchmark_filter='^ratio/host/'
else
  echo "Without UCX 1.22: it can not be installed into $newest (see $log)." >&2
fi
benchmarks/alternatives.sh "$results" "$@" || failed=1

if [ ! -x $plotter/bin/python ]; then python3 -m venv $plotter >>$log 2>&1 || true; fi
$plotter/bin/pip install --quiet --only-binary :all: matplotlib >>$log 2>&1 ||
  echo "No plots: matplotlib can not be installed into $plotter (see $log)." >&2
python=$plotter/bin/python
[ -x $python ] || python=python3
$python benchmarks/report.py $results "${docs[@]}" || failed=1
exit $failed
