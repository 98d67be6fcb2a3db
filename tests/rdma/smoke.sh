#!/bin/sh
# A part of tests/run-rdma.sh: what is used over RDMA, and what is said of it, within machine 1 and between both.
#   tests/rdma/smoke.sh 1 BUILD [FUNCTION ARGUMENT...]
. tests/rdma/common.sh

# Looks at what `ucxio info` says of the region in memory: which transport, and which transfer method.
says_method() { # URL METHOD
  "$bin/ucxio" info --timeout 30 "$1/memory" >/tmp/info 2>&1
  result=$?
  cat /tmp/info
  [ $result = 0 ] || return
  grep -q 'rc_verbs/rxe0:1' /tmp/info && grep -q "transfer  *$2:" /tmp/info && ! grep -q 'not used' /tmp/info &&
    grep -q '^RDMA  *used' /tmp/info
}

# A reader that dies while it reads is no harm to the server.
survives_reader() { # URL PID
  for _ in 1 2 3; do
    rm -f /tmp/reader # what the one before has said
    "$bin/ucxio-rdma-peer" read-on "$1" >/tmp/reader 2>&1 &
    reader=$!
    await /tmp/reader '^begun' || { kill -9 $reader; return 1; }
    kill -9 $reader
    wait $reader 2>/dev/null
  done
  [ -z "$2" ] || kill -0 "$2" || { echo "the server has ended"; return 1; }
  "$bin/ucxio-rdma-peer" check "$1"
}

served_whole() { # URL FILE
  "$bin/ucxio" cat --timeout 30 "$1" >/tmp/copy && cmp /tmp/copy "$2"
}

log_says() { # EXPRESSION URL
  UCXIO_LOG=info "$bin/ucxio" ls --timeout 30 "$2" >/tmp/log 2>&1
  cat /tmp/log
  grep -q "$1" /tmp/log
}

# Becomes a command that may lock 64 KiB, as a user without rights may on some systems.
with_little_memory() { # COMMAND...
  exec /usr/bin/setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock /bin/sh -c 'ulimit -l 64; exec "$@"' sh "$@"
}

tells_of_little_memory() {
  (with_little_memory "$bin/ucxio" info) >/tmp/info || return
  cat /tmp/info
  grep -q 'not used .*rxe0:1: the process may lock 65536 bytes' /tmp/info && ! grep -q 'rc_verbs' /tmp/info
}

# UCX would try for ever to register its buffers.
serves_with_little_memory() { # PORT FILE
  with_little_memory "$bin/ucxio" serve --ucx --bind "$here:$1" --insecure "file=$2" >"/tmp/served.$1" 2>&1 &
  little=$!
  await "/tmp/served.$1" '^ucx://' && served_whole "ucx://$here:$1/file" "$2"
  result=$?
  kill $little
  return $result
}

refuses_hardware_with_little_memory() {
  (with_little_memory "$bin/ucxio-rdma-peer" names rxe0:1) >/tmp/refused 2>&1 && return 1
  cat /tmp/refused
  grep -q 'ulimit -l unlimited' /tmp/refused
}

port_is_down() {
  "$bin/ucxio" info >/tmp/info || return
  cat /tmp/info
  grep -q 'not used .*rxe0:1: its port is DOWN' /tmp/info && ! grep -q 'rc_verbs' /tmp/info
}

if [ $# -gt 0 ]; then
  "$@"
  exit
fi
dd if=/dev/urandom of=/tmp/file bs=1k count=3000 2>/dev/null
url=ucx://$here:7471
serve 7471 "$here" || exit
step "a device by its name" "$bin/ucxio-rdma-peer" names rxe0:1
step "closed regions leave no registration" "$bin/ucxio-rdma-messages" forget rxe0:1
# There the memory is read where it lies; the next step asks for RMA by name.
call "one machine: info says rc_verbs and cma" says_method $url cma
step "one machine: read, write, flush, streams" "$bin/ucxio-rdma-peer" check $url
call "one machine: killed readers" survives_reader $url "$(cat /tmp/server.7471)"
"$bin/ucxio" serve --ucx --bind "$here:7473" --insecure file=/tmp/file >/tmp/served 2>&1 &
tool=$!
await /tmp/served '^ucx://' || failed=1
call "one machine: ucxio serve" served_whole "ucx://$here:7473/file" /tmp/file
kill $tool
# An address with a label: the interface has another name then.
serve 7474 192.0.2.11 UCX_TLS=tcp,self || failed=1
call "an address with a label: log" log_says 'limited to eth0 rxe0:1' ucx://192.0.2.11:7474
serve 7475 "$here" UCX_TLS=tcp,self || failed=1
call "a server without RDMA: the log says so" log_says 'RDMA hardware of this side is not used' ucx://$here:7475
call "the log says what the context is limited to" log_says 'limited to eth0 rxe0:1' $url
# By RDMA's connection manager alone, without TCP.
rdmacm='UCX_TLS=rc,self UCX_SOCKADDR_TLS_PRIORITY=rdmacm'
serve 7476 "$here" "$rdmacm" || failed=1
step "rc and rdmacm alone" env $rdmacm "$bin/ucxio-rdma-peer" check ucx://$here:7476
datagrams='UCX_TLS=ud,self UCX_SOCKADDR_TLS_PRIORITY=rdmacm,tcp'
serve 7477 "$here" "$datagrams" || failed=1
step "ud alone: by message" env $datagrams "$bin/ucxio-rdma-peer" datagrams ucx://$here:7477
# What the environment names makes the limit narrower; blanks are none of a name.
call "UCX_NET_DEVICES with a blank and no port: the log" env "UCX_NET_DEVICES=eth0, rxe0" \
  sh "$0" 1 "$build" log_says 'limited to eth0 rxe0:1: .*UCX_NET_DEVICES=eth0,rxe0$' $url
call "UCX_NET_DEVICES without the device: the log" env UCX_NET_DEVICES=eth0 \
  sh "$0" 1 "$build" log_says 'limited to eth0: .*, and UCX_NET_DEVICES=eth0$' $url
call "little memory to lock: info says so" tells_of_little_memory
call "little memory to lock: ucxio serve goes without RDMA" serves_with_little_memory 7478 /tmp/file
call "little memory to lock: a device by its name is refused" refuses_hardware_with_little_memory
for each in 7471 7474 7475 7476 7477; do kill "$(cat /tmp/server.$each)"; done
url=ucx://$there:7472
call "two machines: the other one serves" other_has serve 7472 "$there"
call "two machines: info says rc_verbs and rma" says_method $url rma
step "two machines: read, write, flush, streams" "$bin/ucxio-rdma-peer" check $url
call "two machines: killed readers" survives_reader $url
call "two machines: the other one receives" other_has receive_messages 7478
step "two machines: long messages are read by RMA" "$bin/ucxio-rdma-messages" send $there:7478
if [ "${UCXIO_RDMA_KIND:-quick}" = whole ]; then
  bound=900 step "two machines: messages of several sizes, by RMA and in pieces" "$bin/ucxio-rdma-messages" measure $there:7478
fi
ip link set eth0 down
call "a port that is down: info says so" port_is_down
link_up
exit $failed
