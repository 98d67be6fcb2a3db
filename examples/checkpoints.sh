#!/usr/bin/env bash
# A checkpoint of several shards goes from one process to another: copied, interrupted, resumed, compared, piped.
# docs/piping-checkpoints.md tells it, on one machine and a smaller size.
#   checkpoints.sh UCXIO [BYTES-OF-A-SHARD]
set -euo pipefail
ucxio=$1 size=${2:-20000000} work=$(mktemp -d) pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait || true; rm -rf "$work"' EXIT
cd "$work"
soon() { # waits until the command succeeds
  for _ in {1..1200}; do if "$@" >&/dev/null; then return; fi; sleep 0.05; done
  echo "checkpoints: this did not happen: $*" >&2; exit 1
}
url_in() { soon grep -q 'ucx://' "$1"; grep -o 'ucx://[^ ]*' "$1"; }

# As the field's programs leave it: shards of safetensors behind an index, and the optimizer's state.
checkpoint=step-1000 index=step-1000/model.safetensors.index.json
mkdir -p "$checkpoint/optimizer" node7 node8
for shard in 1 2 3; do
  file=$checkpoint/model-0000$shard-of-00003.safetensors
  header="{\"layer.$shard.weight\":{\"dtype\":\"U8\",\"shape\":[$size],\"data_offsets\":[0,$size]}}"
  { printf '%b' "$(printf '\\x%02x' ${#header})\0\0\0\0\0\0\0$header"; head -c "$size" /dev/urandom; } >"$file"
  head -c "$((size / 4))" /dev/urandom >"$checkpoint/optimizer/mp_rank_0${shard}_states.pt"
done
printf '{"metadata":{"total_size":%d}}\n' "$((3 * size))" >"$index"

echo "== copied, interrupted, resumed"
"$ucxio" serve --quiet --store checkpoints=node7 --writable >served & pids+=($!)
url=$(url_in served)
"$ucxio" cp -r --resume --bwlimit "$((size / 4))" "$checkpoint" "$url/checkpoints/" & copy=$!
soon test -s "node7/$checkpoint/.model-00003-of-00003.safetensors.ucxio-part" -a -s "node7/$index"
code=0; kill "$copy"; wait "$copy" || code=$?; [ "$code" = 143 ]
"$ucxio" ls "$url/checkpoints/$checkpoint"
before=$(stat -c %i "node7/$index")
"$ucxio" cp -r --resume --verify "$checkpoint" "$url/checkpoints/"
diff -r "$checkpoint" "node7/$checkpoint"
[ "$(stat -c %i "node7/$index")" = "$before" ] # what was whole is still the same file

echo "== interrupted, and a shard is written anew meanwhile"
shard=$checkpoint/model-00003-of-00003.safetensors
has() { [ "$(stat -c %s "$1")" -ge "$2" ]; }
rm "node7/$shard"
"$ucxio" cp -r --resume --bwlimit "$((size / 4))" "$checkpoint" "$url/checkpoints/" & copy=$!
soon has "node7/$checkpoint/.model-00003-of-00003.safetensors.ucxio-part" 2000000
code=0; kill "$copy"; wait "$copy" || code=$?; [ "$code" = 143 ]
head -c "$size" /dev/urandom >"$shard"
code=0; "$ucxio" cp -r --resume "$checkpoint" "$url/checkpoints/" || code=$?; [ "$code" = 11 ]
"$ucxio" cp -r --restart-changed --hash xxh3 "$checkpoint" "$url/checkpoints/"
diff -r "$checkpoint" "node7/$checkpoint"

echo "== compared, where the bytes are"
for file in "$checkpoint"/*.safetensors; do
  here=$("$ucxio" hash "$file") there=$("$ucxio" hash "$url/checkpoints/$file")
  [ "${here%% *}" = "${there%% *}" ]
done
"$ucxio" cat "$url/checkpoints/$checkpoint/model-00002-of-00003.safetensors" --offset 8 --length 32; echo

echo "== piped, without a file between"
"$ucxio" pipe receive 2>meeting | tar x -C node8 & receiver=$!
tar c "$checkpoint" | "$ucxio" pipe send "$(url_in meeting)"
wait "$receiver"
diff -r "$checkpoint" "node8/$checkpoint"

echo "== a writer that dies: its reader does not take that for the end"
"$ucxio" pipe receive 2>meeting-again >half & receiver=$! pids+=($!)
mkfifo more; exec 3<>more; printf 'half of it' >&3
"$ucxio" pipe send "$(url_in meeting-again)" <more & sender=$! pids+=($!)
soon test -s half
kill -KILL "$sender"; wait "$sender" 2>/dev/null || true
code=0; wait "$receiver" || code=$?; [ "$code" = 7 ]
tail -n 1 meeting-again
