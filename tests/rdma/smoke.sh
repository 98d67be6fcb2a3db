#!/bin/sh
# The smoke test over RDMA, in one of the two virtual machines of tests/run-rdma.sh:
#   tests/rdma/smoke.sh NUMBER BUILD
# Machine 2, 192.0.2.2, serves. Machine 1 serves itself, and then is a client of machine 2.
number=$1
bin=$2/bin
here=192.0.2.$number
there=192.0.2.2
failed=0
export UCX_HANDLE_ERRORS=none

step() { # NAME COMMAND...
  name=$1
  shift
  if timeout 60 "$@" >/tmp/out 2>&1; then
    echo "passed: $name"
  else
    echo "FAILED ($?): $name"
    sed 's/^/    /' /tmp/out
    failed=1
  fi
}

# Waits until a file has a line that matches.
await() { # FILE EXPRESSION
  tries=0
  until grep -q "$2" "$1" 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || { echo "no $2 in $1:"; cat "$1"; return 1; }
    sleep 0.1
  done
}

serve() { # PORT ADDRESS [NAME=VALUE]
  env ${3:-LC_ALL=C.UTF-8} "$bin/ucxio-rdma-peer" serve "$2:$1" >"/tmp/served.$1" 2>&1 &
  echo $! >"/tmp/server.$1"
  await "/tmp/served.$1" '^ucx://'
}

# Looks at what `ucxio info` says of the region in memory: which transport, and which way.
says_way() { # URL WAY
  "$bin/ucxio" info --timeout 30 "$1/memory" >/tmp/info 2>&1
  result=$?
  cat /tmp/info
  [ $result = 0 ] || return
  grep -q 'rc_verbs/rxe0:1' /tmp/info && grep -q "way  *$2:" /tmp/info && ! grep -q 'not used' /tmp/info
}

# A reader that dies while it reads is no harm to the server.
survives_reader() { # URL PID
  for round in 1 2 3; do
    rm -f /tmp/reader # what the one before has said
    "$bin/ucxio-rdma-peer" read "$1" >/tmp/reader 2>&1 &
    reader=$!
    await /tmp/reader '^reading' || { kill -9 $reader; return 1; }
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

port_is_down() {
  "$bin/ucxio" info >/tmp/info || return
  cat /tmp/info
  grep -q 'not used .*rxe0:1: its port is DOWN' /tmp/info && ! grep -q 'rc_verbs' /tmp/info
}

# `timeout` runs programs, no functions.
case ${3:-} in
  '') ;;
  *) shift 2; "$@"; exit ;;
esac
call() { # NAME FUNCTION ARGUMENT...
  name=$1
  shift
  step "$name" sh "$0" "$number" "${bin%/bin}" "$@"
}

if [ "$number" = 2 ]; then
  serve 7472 "$here" || exit
  "$bin/ucxio-rdma-messages" receive "$here:7478" >/tmp/receives 2>&1 &
  await /tmp/receives '^receives' || exit
  echo "machine 2 serves"
  sleep 600
  exit 1
fi

dd if=/dev/urandom of=/tmp/file bs=1k count=3000 2>/dev/null
url=ucx://$here:7471
serve 7471 "$here" || exit
step "a device by its name" "$bin/ucxio-rdma-peer" names rxe0:1
step "closed regions leave no registration" "$bin/ucxio-rdma-messages" forget rxe0:1
# There the memory is read where it lies; the next step asks for RMA by name.
call "one machine: info says rc_verbs and cma" says_way $url cma
step "one machine: read, write, flush, streams" "$bin/ucxio-rdma-peer" check $url
call "one machine: killed readers" survives_reader $url "$(cat /tmp/server.7471)"
"$bin/ucxio" serve --bind "$here:7473" --insecure file=/tmp/file >/tmp/served 2>&1 &
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
# Datagrams: UCX drops those of IPv4 by its check of the destination (ud_ep.c).
datagrams='UCX_TLS=ud,self UCX_SOCKADDR_TLS_PRIORITY=rdmacm,tcp UCX_UD_VERBS_ETH_DGID_CHECK=n'
serve 7477 "$here" "$datagrams" || failed=1
step "ud alone: by message" env $datagrams "$bin/ucxio-rdma-peer" datagrams ucx://$here:7477
# What the environment names makes the limit narrower; blanks are none of a name.
call "UCX_NET_DEVICES: the log" env "UCX_NET_DEVICES=eth0, rxe0" sh "$0" "$number" "${bin%/bin}" log_says 'eth0 rxe0:1' $url
url=ucx://$there:7472
tries=0
until "$bin/ucxio" ls $url >/dev/null 2>&1 || [ $tries = 30 ]; do tries=$((tries + 1)); sleep 1; done
call "two machines: info says rc_verbs and rma" says_way $url rma
step "two machines: read, write, flush, streams" "$bin/ucxio-rdma-peer" check $url
call "two machines: killed readers" survives_reader $url
step "two machines: long messages are read by RMA" "$bin/ucxio-rdma-messages" send $there:7478
ip link set eth0 down
call "a port that is down: info says so" port_is_down
exit $failed
