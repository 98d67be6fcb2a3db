#!/bin/sh
# A part of tests/run-rdma.sh: cases of the test programs, over verbs, within machine 1.
#   tests/rdma/cases.sh 1 BUILD [FUNCTION ARGUMENT...]
# UCXIO_RDMA_KIND=whole has all that go over verbs; else it is some of conformance. UCXIO_RDMA_ONLY is PROGRAM, whose
# cases of all these are run, or PROGRAM:FILTER.
. tests/rdma/common.sh
export UCXIO_ROUTE=verbs UCXIO_RDMA_DEVICE=rxe0:1

# Says how the cases ended, also of a run that takes too long; fails where one was skipped without an expected reason.
tell() { # RESULTS
  awk -F '\t' '{ ++count[$1]; if ($2 + 0 > most) { most = $2; longest = $3 } }
    $1 == "skipped" { ++reason[$4] }
    END { for (each in count) printf "measured: %d %s\n", count[each], each
          for (each in reason) printf "measured: %d skipped: %s\n", reason[each], each
          printf "measured: the longest: %s, %.1f s\n", longest, most / 1000 }' "$1/cases"
  UCXIO_EXPECTED_SKIPS=tests/support/run/expected_skips.txt python3 tests/support/run/report_cases.py "$1"
}

run() { # PROGRAM FILTER [OPTION...]
  program=$1 filter=$2
  shift 2
  rm -rf /tmp/results
  trap 'tell /tmp/results' TERM
  python3 tests/support/run/run_cases.py --label "$program" --limit "$limit" --results /tmp/results/cases --filter "$filter" "$@" \
    "$bin/ucxio-$program-tests"
  result=$?
  tell /tmp/results || result=1
  return $result
}

if [ $# -gt 0 ]; then
  "$@"
  exit
fi
only=${UCXIO_RDMA_ONLY:-}
cases() { # PROGRAM WHAT FILTER [OPTION...]
  program=$1 what=$2
  shift 2
  case $only in "" | "$program") call "$program, $what over verbs" run "$program" "$@" ;; esac
}

# Of each case one instance for each route. What is of TCP or of this host's memory is run elsewhere.
if [ "$only" != "${only#*:}" ]; then
  export bound=420 limit=120
  [ "${UCXIO_RDMA_KIND:-quick}" = quick ] || bound=6000 limit=600
  call "$only over verbs" run "${only%%:*}" "${only#*:}" --instances 1
elif [ "${UCXIO_RDMA_KIND:-quick}" = whole ]; then
  export bound=3600 limit=600
  for each in D E B C; do
    cases conformance $each "*Conformance$each*verbs*:Modes/Conformance$each*-*Large*:*AAdopted*" --instances 1
  done
  for each in WayOver StreamOver BoostDeviceOver OneCore Transfer Refusal Revocation Flush SharedEndpoint Request Lifetime \
    PipeOverMessages PipeByAddress; do
    cases fabric $each "*$each*verbs*" --instances 1
  done
  for each in Listener PipeBothWays UrlFstream ServerWorkers; do cases fabric $each "$each.*"; done
  for each in OwnerDeath Silence ServerDeath Reconnect; do cases process $each "$each.*"; done
  cases process MessageDeath "Planes/MessageDeath.*/tcp"
  cases tool Cat 'Cat.*'
else
  export bound=180 limit=60
  caller=owner_sleeping_reader_caller
  cases conformance some "Pairs/ConformanceD.*/verbs_by_listener_$caller:\
Pairs/ConformanceD.D10_D12*/verbs_by_address_$caller:Messages/ConformanceC.*/verbs_by_listener_sender_caller_receiver_sleeping"
fi
exit $failed
