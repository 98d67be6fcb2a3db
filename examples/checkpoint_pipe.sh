#!/usr/bin/env bash
# Runs the two ends of checkpoint_pipe as two processes: all of a checkpoint arrives, and a sender that fails on the way is no
# end to the receiver.
#   checkpoint_pipe.sh PROGRAM
set -euo pipefail
program=$(command -v -- "$1") || { echo "checkpoint_pipe: there is no program $1" >&2; exit 1; }
program=$(realpath -- "$program") work=$(mktemp -d) receiver=
trap 'if [ "$receiver" ]; then kill "$receiver" 2>/dev/null || true; wait; fi; rm -rf "$work"' EXIT
cd "$work"
start_receiver() { # DIRECTORY : sets url
  rm -f told
  "$program" receive "$1" >told 2>why & receiver=$!
  for _ in {1..600}; do
    if url=$(grep -s -m 1 -o 'ucx[a-z+]*://.*' told); then return; fi
    sleep 0.05
  done
  echo "checkpoint_pipe: the receiver did not start: $(cat why)" >&2; exit 1
}
end_of_receiver() { # sets code
  code=0; wait "$receiver" || code=$?
  receiver=
}

mkdir -p step-1000/optimizer
for shard in 1 2 3; do
  head -c 5000000 /dev/urandom >"step-1000/model-0000$shard-of-00003.safetensors"
  head -c "$shard" /dev/urandom >"step-1000/optimizer/mp_rank_0${shard}_states.pt"
done
: >step-1000/empty

start_receiver node7/step-1000
"$program" send "$url" step-1000
end_of_receiver
cat told
[ "$code" = 0 ]
diff -r step-1000 node7/step-1000

start_receiver node8/step-1000
code=0; "$program" send "$url" missing || code=$?
[ "$code" = 1 ]
end_of_receiver
[ "$code" = 1 ]
grep 'gave up' why
[ ! -e node8 ]
