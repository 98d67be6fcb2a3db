#!/usr/bin/env bash
# A checkpoint of several shards goes from one process to another: copied, interrupted, resumed, compared, piped.
# docs/how-to/checkpoints.md tells it, on one machine and a smaller size.
#   checkpoints.sh UCXIO [BYTES-OF-A-SHARD]
set -euo pipefail
ucxio=$(command -v -- "$1") || { echo "checkpoints: there is no program $1" >&2; exit 1; }
ucxio=$(realpath -- "$ucxio") size=${2:-20000000} work=$(mktemp -d) pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait || true; rm -rf "$work"' EXIT
cd "$work"
soon() { # waits until the command succeeds
  for _ in {1..1200}; do if "$@" >&/dev/null; then return; fi; sleep 0.05; done
  echo "checkpoints: this did not happen: $*" >&2; exit 1
}
url_in() { soon grep -q 'ucxs\?://' "$1"; grep -o 'ucxs\?://[^ ]*' "$1"; }
longer_than() { [ "$(stat -c %s "$2")" -gt "$1" ]; }
serve() { # FILE-FOR-THE-URL ARGUMENTS... : a server until the end of this script
  "$ucxio" serve --quiet "${@:2}" >"$1" & pids+=($!)
}
press_ctrl_c() { # PID FILE : ends a copy as a terminal would, and expects that it says how to go on
  local code=0
  kill -INT "$1"; wait "$1" || code=$?
  cat "$2"
  [ "$code" = 130 ]
  grep -q -e '--resume goes on' "$2"
}

# As the field's programs leave it: shards of safetensors behind an index, and the optimizer's state.
checkpoint=step-1000 index=step-1000/model.safetensors.index.json
mkdir -p "node1/$checkpoint/optimizer" node{7,8,9,10}
cd node1
for shard in 1 2 3; do
  file=$checkpoint/model-0000$shard-of-00003.safetensors
  header="{\"layer.$shard.weight\":{\"dtype\":\"U8\",\"shape\":[$size],\"data_offsets\":[0,$size]}}"
  { printf '%b' "$(printf '\\x%02x' ${#header})\0\0\0\0\0\0\0$header"; head -c "$size" /dev/urandom; } >"$file"
  head -c "$((size / 4))" /dev/urandom >"$checkpoint/optimizer/mp_rank_0${shard}_states.pt"
done
printf '{"metadata":{"total_size":%d}}\n' "$((3 * size))" >"$index"
cd ..

echo "== copied, interrupted, resumed"
serve served-7 --store checkpoints=node7 --writable
url=$(url_in served-7)
set -m # a background process hears no Ctrl-C else
"$ucxio" cp -r --resume --bwlimit "$((size / 4))" "node1/$checkpoint" "$url/checkpoints/" 2>said & copy=$!
set +m
soon longer_than 1048576 "node7/$checkpoint/.model-00003-of-00003.safetensors.ucxio-part"
soon test -s "node7/$index"
press_ctrl_c "$copy" said
"$ucxio" ls "$url/checkpoints/$checkpoint"
before=$(stat -c %i "node7/$index")
"$ucxio" cp -r --resume --verify "node1/$checkpoint" "$url/checkpoints/"
diff -r "node1/$checkpoint" "node7/$checkpoint"
[ "$(stat -c %i "node7/$index")" = "$before" ] # what was whole is still the same file

echo "== interrupted, and a shard is written anew meanwhile"
shard=$checkpoint/model-00003-of-00003.safetensors
has() { [ "$(stat -c %s "$1")" -ge "$2" ]; }
rm "node7/$shard"
"$ucxio" cp -r --resume --bwlimit "$((size / 4))" "node1/$checkpoint" "$url/checkpoints/" & copy=$!
soon has "node7/$checkpoint/.model-00003-of-00003.safetensors.ucxio-part" 2000000
code=0; kill "$copy"; wait "$copy" || code=$?; [ "$code" = 143 ]
head -c "$size" /dev/urandom >"node1/$shard"
code=0; "$ucxio" cp -r --resume "node1/$checkpoint" "$url/checkpoints/" || code=$?; [ "$code" = 11 ]
"$ucxio" cp -r --restart-changed --hash xxh3 "node1/$checkpoint" "$url/checkpoints/"
diff -r "node1/$checkpoint" "node7/$checkpoint"

echo "== compared, where the bytes are"
for file in "node1/$checkpoint"/*.safetensors; do
  here=$("$ucxio" hash "$file") there=$("$ucxio" hash "$url/checkpoints/${file#node1/}")
  [ "${here%% *}" = "${there%% *}" ]
done
"$ucxio" cat "$url/checkpoints/$checkpoint/model-00002-of-00003.safetensors" --offset 8 --length 32; echo

echo "== from server to server, interrupted, resumed"
serve served-1 --store checkpoints=node1 --agent
serve served-9 --store checkpoints=node9 --writable --fetch-from 127.0.0.1
from=$(url_in served-1)/checkpoints/$checkpoint to=$(url_in served-9)/checkpoints/
set -m
"$ucxio" cp -r --direct --resume --bwlimit "$((size / 4))" "$from" "$to" 2>said & copy=$!
set +m
soon longer_than 1048576 "node9/$checkpoint/.model-00003-of-00003.safetensors.ucxio-part"
soon test -s "node9/$index"
press_ctrl_c "$copy" said
"$ucxio" cp -r --direct --resume --verify "$from" "$to"
diff -r "node1/$checkpoint" "node9/$checkpoint"

echo "== compressed, to here and from server to server"
"$ucxio" cp -r --compress zstd "$from" node10/
diff -r "node1/$checkpoint" "node10/$checkpoint"
rm -r "node9/$checkpoint"
"$ucxio" cp -r --direct --compress zstd "$from" "$to"
diff -r "node1/$checkpoint" "node9/$checkpoint"

echo "== piped, without a file between"
"$ucxio" pipe receive 2>meeting | tar x -C node8 & receiver=$!
tar c -C node1 "$checkpoint" | "$ucxio" pipe send "$(url_in meeting)"
wait "$receiver"
diff -r "node1/$checkpoint" "node8/$checkpoint"

echo "== piped to three readers at once, who meet the writer at a server"
serve served-pipes --pipes
pipe=$(url_in served-pipes)/model shard=node1/$checkpoint/model-00001-of-00003.safetensors receivers=()
for node in 7 8 9; do
  "$ucxio" pipe receive "$pipe" >"node$node/model" & receivers+=($!)
done
"$ucxio" pipe send --readers 3 "$pipe" <"$shard"
for receiver in "${receivers[@]}"; do wait "$receiver"; done
for node in 7 8 9; do cmp "$shard" "node$node/model"; done

echo "== a writer that dies: its reader does not take that for the end"
"$ucxio" pipe receive 2>meeting-again >half & receiver=$! pids+=($!)
mkfifo more; exec 3<>more; printf 'half of it' >&3
"$ucxio" pipe send "$(url_in meeting-again)" <more & sender=$! pids+=($!)
soon test -s half
kill -KILL "$sender"; wait "$sender" 2>/dev/null || true
code=0; wait "$receiver" || code=$?; [ "$code" = 7 ]
tail -n 1 meeting-again
