# What the parts of tests/run-rdma.sh share; each includes it as `. tests/rdma/common.sh`, with its own arguments:
#   PART NUMBER BUILD [FUNCTION ARGUMENT...]
# NUMBER is the machine's: 1 runs the parts, 2 does what 1 has it do.
# shellcheck shell=sh disable=SC2034 # others use the variables
number=$1
build=$2
bin=$2/bin
shift 2
here=192.0.2.$number
there=192.0.2.$((3 - number))
control=7000 # the port at which machine 2 takes commands
failed=0
bound=${bound:-120} # seconds for a step, on a busy machine
export UCX_HANDLE_ERRORS=none
# UCX has a lane of datagrams (`ud`) in each connection over verbs, to see every 20 s whether the peer is there. `ud` drops
# what comes by an IPv4 address of soft-RoCE, unless it is told not to look (ud_ep.c): after 50 s each connection would be
# lost, "Endpoint timeout".
export UCX_UD_VERBS_ETH_DGID_CHECK=n UCX_WARN_UNUSED_ENV_VARS=n
. tests/rdma/device.sh

step() { # NAME COMMAND...
  name=$1
  shift
  began=$(date +%s)
  if timeout "$bound" "$@" >/tmp/out 2>&1; then
    echo "passed: $name ($(($(date +%s) - began)) s)"
    sed -n 's/^measured: /    /p' /tmp/out
  else
    echo "FAILED ($?): $name"
    sed 's/^/    /' /tmp/out
    failed=1
  fi
}

# A step that is a function of the part. `timeout` runs programs only: the part is called again.
call() { # NAME FUNCTION ARGUMENT...
  name=$1
  shift
  step "$name" sh "$0" "$number" "$build" "$@"
}

# Waits until a file has a line that matches, for a minute.
await() { # FILE EXPRESSION
  await_until=$(($(date +%s) + 60))
  until grep -q "$2" "$1" 2>/dev/null; do
    [ "$(date +%s)" -lt $await_until ] || { echo "no $2 in $1:"; cat "$1"; return 1; }
    sleep 0.1
  done
}

serve() { # PORT ADDRESS [NAME=VALUE]
  rm -f "/tmp/served.$1"
  env ${3:-LC_ALL=C.UTF-8} "$bin/ucxio-rdma-peer" serve "$2:$1" >"/tmp/served.$1" 2>&1 &
  echo $! >"/tmp/server.$1"
  await "/tmp/served.$1" '^ucx://'
}

receive_messages() { # PORT
  "$bin/ucxio-rdma-messages" receive "$here:$1" >/tmp/receives 2>&1 &
  await /tmp/receives '^receives'
}

# Memory of a process that has UCX alone, tests/process/plain_peer.cpp; prints what it tells of it.
serve_plain() { # address|HOST
  rm -f /tmp/plain.*
  mkfifo /tmp/plain.in
  # Soft-RoCE of Linux 6.12 ends processes of UCX (up to 1.22) by its reports: docs/how-to/rdma.md.
  UCX_IB_ASYNC_EVENTS=n UCX_SOCKADDR_TLS_PRIORITY=rdmacm "$bin/ucxio-plain-peer" rc,ud,self "$1" own 1000000 <>/tmp/plain.in >/tmp/plain.out 2>&1 &
  echo $! >/tmp/plain.pid
  await /tmp/plain.out . && cat /tmp/plain.out
}

ask_plain() { # LINE EXPRESSION
  echo "$1" >/tmp/plain.in
  await /tmp/plain.out "$2"
}

# Has the other machine run this line of the shell, and shows what it prints; ends with its status.
on_other() { # LINE
  printf '{ %s\n} 2>&1; echo "ended $?"\n' "$1" | nc -w 20 "$there" $control >/tmp/on_other || true
  sed '$d' /tmp/on_other
  [ "$(tail -n 1 /tmp/on_other)" = "ended 0" ]
}

# Waits until the other machine obeys: each may be the first to have started.
await_other() {
  tries=0
  until on_other true >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 120 ] || { echo "the other machine does not obey"; return 1; }
    sleep 0.5
  done
}

# The library's common functions, in a process of the other machine's: serve and the like.
other_has() { # FUNCTION ARGUMENT...
  on_other "sh tests/rdma/obey.sh 2 '$build' $*"
}
