#!/usr/bin/env bash
# Runs a command in a network namespace that is joined to a second one by a pair of interfaces, so
# that TCP goes neither over the loopback interface nor over a network of somebody else's.
#   benchmarks/namespaces.sh COMMAND [ARGUMENT...]
# Tells the benchmarks by UCXIO_BENCHMARK_NETWORK. Ends with 77 where it may make no namespaces;
# they are gone with the processes in them, however those end.
set -euo pipefail

if [ "${1:-}" != --inside ]; then
  [ $# -gt 0 ] || { sed -n '2,6s/^# *//p' "$0" >&2; exit 2; }
  mapped=()
  [ "$(id -u)" = 0 ] || mapped=(--user --map-root-user)
  if ! command -v ip >/dev/null || ! unshare "${mapped[@]}" --net --mount mount -t sysfs sysfs /sys 2>/dev/null; then
    echo "no network namespaces here: they need iproute2, and root or user namespaces" >&2
    exit 77
  fi
  exec unshare "${mapped[@]}" --net --mount "$0" --inside "$@"
fi
shift
# UCX looks for interfaces there. The same names are in both namespaces, so that one view serves.
mount -t sysfs sysfs /sys

# The second namespace lives as long as this process, which does nothing, and that as long as we do.
setpriv --pdeathsig KILL unshare --net sleep infinity &
owner=$! command=
trap 'kill $owner $command 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM HUP
there() { nsenter --net="/proc/$owner/ns/net" "$@"; }
in_another() { [ "$(readlink "/proc/$owner/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
is_up() { "$@" ip link show bench | grep -q 'state UP'; }
soon() { # COMMAND...: waits until it succeeds
  local tenths
  for ((tenths = 0; tenths < 100; ++tenths)); do
    if "$@"; then return; fi
    sleep 0.1
  done
  return 1
}
soon in_another

ip link add bench type veth peer name bench netns $owner
there ip address add 10.213.0.1/24 dev bench
ip address add 10.213.0.2/24 dev bench
for side in env there; do
  $side ip link set lo up
  $side ip link set bench up
  # The usual congestion control of such a network; BBR, where that is the default, has phases.
  $side sh -c 'echo reno >/proc/sys/net/ipv4/tcp_congestion_control' 2>/dev/null ||
    echo "the congestion control stays $(cat /proc/sys/net/ipv4/tcp_congestion_control)" >&2
done
soon is_up env
soon is_up there
export UCXIO_BENCHMARK_NETWORK="bench 10.213.0.1 /proc/$owner/ns/net"
setpriv --pdeathsig KILL "$@" &
command=$!
wait $command # so that a signal is heard meanwhile
