#!/bin/sh
# A part of tests/run-rdma.sh: cases of the test programs, over verbs, within machine 1.
#   tests/rdma/cases.sh 1 BUILD [FUNCTION ARGUMENT...]
# UCXIO_RDMA_KIND=whole has all that go over verbs; else it is some of each program.
. tests/rdma/common.sh
export UCXIO_ROUTE=verbs UCXIO_RDMA_DEVICE=rxe0:1

run() { # PROGRAM FILTER [OPTION...]
  program=$1 filter=$2
  shift 2
  python3 tests/support/run/run_cases.py --label "$program" --limit "$limit" --results /tmp/results --filter "$filter" "$@" \
    "$bin/ucxio-$program-tests" >/tmp/cases
  result=$?
  cat /tmp/cases
  sed -n '$s/^/measured: /p' /tmp/cases
  awk -F '\t' '$1 == "skipped" { ++count[$4] }
    END { for (each in count) print "measured: " count[each] " skipped: " each }' /tmp/results
  return $result
}

if [ $# -gt 0 ]; then
  "$@"
  exit
fi
if [ "${UCXIO_RDMA_KIND:-quick}" = whole ]; then
  export bound=3600 limit=600
  # Of each case one instance for each route. What is of TCP or of this host's memory is run elsewhere.
  for each in D E B C; do
    call "conformance $each over verbs" run conformance "*Conformance$each*verbs*:Modes/Conformance$each*-*Large*:*AAdopted*" --instances 1
  done
  for each in WayOver Transfer Refusal Revocation Flush SharedEndpoint Request Lifetime PipeOverMessages PipeByAddress; do
    call "fabric, $each over verbs" run fabric "*$each*verbs*" --instances 1
  done
  for each in Listener PipeBothWays UrlFstream ServerWorkers; do
    call "fabric, $each over verbs" run fabric "$each.*"
  done
  for each in OwnerDeath ServerDeath Reconnect; do
    call "process, $each over verbs" run process "$each.*"
  done
  call "process, MessageDeath over verbs" run process "Planes/MessageDeath.*/tcp"
  call "tool, Cat over verbs" run tool 'Cat.*'
else
  export bound=180 limit=60
  caller=owner_sleeping_reader_caller
  call "some of conformance over verbs" run conformance "Pairs/ConformanceD.*/verbs_by_listener_$caller:\
Pairs/ConformanceD.D10_D12*/verbs_by_address_$caller:Messages/ConformanceC.*/verbs_by_listener_sender_caller_receiver_sleeping"
fi
exit $failed
