# Functions of a machine of tests/run-rdma.sh, for its start and for its parts: the RDMA device.
# shellcheck shell=sh

await_port() {
  tries=0
  until grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state || [ $tries = 100 ]; do
    tries=$((tries + 1))
    sleep 0.1
  done
}

# Programs open what is in /dev/infiniband.
make_device() {
  rdma link add rxe0 type rxe netdev eth0 || return
  mkdir -p /dev/infiniband
  for each in /sys/class/infiniband_verbs/uverbs* /sys/class/misc/rdma_cm; do
    name=/dev/infiniband/${each##*/}
    [ -e "$name" ] || ! read -r numbers <"$each/dev" || mknod "$name" c "${numbers%:*}" "${numbers#*:}"
  done
  await_port
}

link_up() {
  ip link set eth0 up
  await_port
}
