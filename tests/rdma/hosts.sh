#!/bin/sh
# A part of tests/run-rdma.sh: what goes between the two machines, and what becomes of it when a process, the link or the
# device goes away.
#   tests/rdma/hosts.sh 1 BUILD [FUNCTION ARGUMENT...]
# UCXIO_RDMA_KIND=whole has each kind of client meet each event; UCXIO_RDMA_ONLY is one of these kinds: read-on, write-on,
# add-on, send-on, pipe-on. A device can be taken away from a machine of its own alone:
# the system waits until no program has it open.
. tests/rdma/common.sh
url=ucx://$there:7481
peer=$bin/ucxio-rdma-peer
# What a client says of its end. No other failure counts.
lost='^ended: (the connection was lost|the deadline passed first)'
revoked='^ended: the owner withdrew the region'

# Both ends of a pipe, which meet at the other machine: one here, one there.
both_ends() { # VERB VERB
  on_other "'$peer' $2 $url >/tmp/end 2>&1 & echo \$! >/tmp/end.pid"
  "$peer" "$1" "$url" || return
  on_other "tries=0; while kill -0 \$(cat /tmp/end.pid) 2>/dev/null && [ \$tries -lt 300 ]; do
    tries=\$((tries + 1)); sleep 0.1; done; cat /tmp/end; ! grep -qv '^measured: ' /tmp/end"
}

# What happens to a client, to its owner, to the link or to the device.
happen() { # EVENT
  case $1 in
    owner-killed) on_other "kill -9 \$(cat /tmp/server.7481)" ;;
    owner-stopped) on_other "kill -STOP \$(cat /tmp/server.7481)" ;;
    withdrawn) on_other "kill -USR1 \$(cat /tmp/server.7481)" && other_has await /tmp/served.7481 ^withdrawn ;;
    reader-killed) on_other "kill -9 \$(cat /tmp/drain.pid)" ;;
    reader-stopped) on_other "kill -STOP \$(cat /tmp/drain.pid)" ;;
    link-down) ip link set eth0 down ;;
    link-blinks) ip link set eth0 down; sleep 2; link_up ;;
    owners-device-gone) on_other "rdma link delete rxe0" || true ;; # waits for those that have it open
    client-killed) kill -9 "$client" ;;
    client-stopped) kill -STOP "$client"; sleep 8 ;;
    client-pauses) kill -STOP "$client"; sleep 2; kill -CONT "$client" ;;
  esac
}

# Makes good what happened; the next client finds all as it was before.
mend() { # EVENT
  case $1 in
    link-*) link_up ;;
    owners-device-gone) on_other ". tests/rdma/device.sh; make_device" ;;
  esac
  kill -9 "$client" 2>/dev/null
  wait "$client" 2>/dev/null
  case $1 in
    owner*) on_other "kill -9 \$(cat /tmp/server.7481); sleep 1" >/dev/null; start_owner ;;
    withdrawn) on_other "kill \$(cat /tmp/server.7481); sleep 3" >/dev/null; start_owner ;;
  esac
}

start_owner() { other_has serve 7481 "$there"; }

# A client meets an event: within 30 s it ends with an error, or goes on for 20 s. The next one is served.
meets() { # VERB EVENT EXPRESSION
  most=30
  rm -f /tmp/client
  UCXIO_RDMA_SECONDS=20 "$peer" "$1" "$url" >/tmp/client 2>&1 &
  client=$!
  await /tmp/client '^begun' || return
  began=$(date +%s)
  happen "$2" || { cat /tmp/on_other; echo "$2 did not happen"; mend "$2"; return 1; }
  case $2 in
    client-killed | client-stopped) ;;
    *)
      tries=0
      until grep -qE '^(ended|went on|ucxio-rdma-peer)' /tmp/client || [ $tries = $((most * 10)) ]; do
        tries=$((tries + 1))
        sleep 0.1
      done
      ;;
  esac
  echo "measured: $(tail -n 1 /tmp/client), $(($(date +%s) - began)) s"
  result=0
  tail -n 1 /tmp/client | grep -qE "$3" || result=1
  [ $result = 0 ] || cat /tmp/client
  mend "$2" || { echo "the owner does not start again"; return 1; }
  "$peer" atomics "$url" || { echo "the next client is not served"; return 1; }
  return $result
}

# A client writes a pipe, whose reader is on the other machine, and meets an event.
pipe_meets() { # EVENT EXPRESSION
  on_other "'$peer' drain-pipe $url >/tmp/drain 2>&1 & echo \$! >/tmp/drain.pid"
  result=0
  meets pipe-on "$1" "$2" || result=1
  case $1 in
    client-killed) other_has await /tmp/drain ^ended || result=1 ;;
  esac
  on_other "cat /tmp/drain; kill -9 \$(cat /tmp/drain.pid) || true"
  case $1 in
    client-killed) grep -qE "$lost" /tmp/on_other || { echo "the reader does not say that the writer was lost"; result=1; } ;;
  esac
  return $result
}

# A client uses memory of a process of the other machine's that has UCX alone.
plain_peer() { # address|HOST
  other_has serve_plain "$1" >/tmp/plain || { cat /tmp/plain; return 1; }
  [ "$1" = address ] || sed -i "s/^ready /ready $1:/" /tmp/plain
  "$peer" plain /tmp/plain
  result=$?
  other_has ask_plain sum '^1000002' || result=1
  on_other 'kill -9 $(cat /tmp/plain.pid)'
  return $result
}

# Clients that are killed at any moment from their start on do the owner no harm.
killed_early() { # VERB
  for moment in 0.2 0.5 0.8 1.1 1.5 2 3; do
    "$peer" "$1" "$url" >/tmp/client 2>&1 &
    client=$!
    sleep $moment
    kill -9 $client
    wait $client 2>/dev/null
  done
  "$peer" atomics "$url"
}

if [ $# -gt 0 ]; then
  "$@"
  exit
fi
call "two machines: both have started" await_other
call "two machines: an owner" start_owner
only=${UCXIO_RDMA_ONLY:-}
if [ -z "$only" ]; then
  for each in batches fences atomics notifications contexts messages; do
    step "two machines: $each" "$peer" $each "$url"
  done
  call "two machines: a pipe that is read here" both_ends read-pipe write-pipe
  call "two machines: a pipe that is written here" both_ends write-pipe read-pipe
  step "a write of raw UCX's with a key for reading" "$peer" key-rights "$here:7482"
  call "two machines: memory of UCX alone, by worker address" plain_peer address
  call "two machines: memory of UCX alone, by listener" plain_peer "$there"
  if [ "${UCXIO_RDMA_KIND:-quick}" = quick ]; then
    call "a reader whose owner is killed" meets read-on owner-killed "$lost"
    call "an owner whose writer is killed" meets write-on client-killed begun
    call "a reader whose memory is withdrawn" meets read-on withdrawn "$revoked"
    call "messages whose link goes down" meets send-on link-down "$lost"
    call "a writer of a pipe whose reader is killed" pipe_meets reader-killed "$lost"
    exit $failed
  fi
fi
# The two ends of a pipe do not need the server where they met.
if [ "${only:-pipe-on}" = pipe-on ]; then
  for event in reader-killed reader-stopped link-down; do
    call "pipe-on, $event" pipe_meets $event "$lost"
  done
  call "pipe-on, owner-killed" pipe_meets owner-killed '^went on'
  call "pipe-on, client-pauses" pipe_meets client-pauses '^went on'
  call "pipe-on, client-killed" pipe_meets client-killed begun
fi
[ "$only" != pipe-on ] || exit $failed
# Hardware serves readers and writers while the owner is stopped; all else needs the owner.
for verb in ${only:-read-on write-on add-on send-on}; do
  stopped=$lost
  case $verb in
    read-on | write-on)
      stopped='^went on'
      call "$verb, withdrawn" meets $verb withdrawn "$revoked"
      ;;
  esac
  call "$verb, owner-stopped" meets $verb owner-stopped "$stopped"
  for event in owner-killed link-down owners-device-gone; do
    call "$verb, $event" meets $verb $event "$lost"
  done
  call "$verb, link-blinks" meets $verb link-blinks "$lost|^went on"
  call "$verb, client-pauses" meets $verb client-pauses '^went on'
  for event in client-killed client-stopped; do
    call "$verb, $event" meets $verb $event begun
  done
  call "$verb, killed early" killed_early $verb
done
exit $failed
