#!/usr/bin/env bash
# A checkpoint of several shards goes from one process to another: piped, copied, interrupted, resumed, compared. What
# docs/piping-checkpoints.md tells, on a smaller size.
#   checkpoints.sh UCXIO [BYTES-OF-A-SHARD]
set -euo pipefail
ucxio=$1 size=${2:-20000000}
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait || true; rm -rf "$work"' EXIT
cd "$work"

# As the field's programs leave it: shards of safetensors behind an index, and the optimizer's state.
checkpoint=step-1000
mkdir -p "$checkpoint/optimizer" node7 node8
for shard in 1 2 3; do
  header="{\"layer.$shard.weight\":{\"dtype\":\"U8\",\"shape\":[$size],\"data_offsets\":[0,$size]}}"
  printf '%b' "$(printf '\\x%02x' ${#header})\0\0\0\0\0\0\0" >"$checkpoint/model-0000$shard-of-00003.safetensors"
  { printf '%s' "$header"; head -c "$size" /dev/urandom; } >>"$checkpoint/model-0000$shard-of-00003.safetensors"
  head -c "$((size / 4))" /dev/urandom >"$checkpoint/optimizer/mp_rank_0${shard}_states.pt"
done
printf '{"metadata":{"total_size":%d}}\n' "$((3 * size))" >"$checkpoint/model.safetensors.index.json"

echo "== a store on node 7"
"$ucxio" serve --quiet --store checkpoints=node7 --writable >url & pids+=($!)
until [ -s url ]; do sleep 0.05; done
url=$(<url)

echo "== copied, interrupted, resumed"
code=0
timeout --signal=INT 1 "$ucxio" cp -r --resume --bwlimit "$((size / 2))" "$checkpoint" "$url/checkpoints/" || code=$?
[ "$code" = 124 ] || [ "$code" = 130 ] # timeout's word for it, or ours
"$ucxio" ls "$url/checkpoints/$checkpoint"
"$ucxio" cp -r --resume --verify "$checkpoint" "$url/checkpoints/"  # needs nothing but the same command
diff -r "$checkpoint" "node7/$checkpoint"

echo "== compared, where the bytes are"
for file in "$checkpoint"/*.safetensors; do
  here=$("$ucxio" hash "$file") there=$("$ucxio" hash "$url/checkpoints/$file")
  [ "${here%% *}" = "${there%% *}" ]
done

echo "== one tensor, of a checkpoint that stays where it is"
"$ucxio" cat "$url/checkpoints/$checkpoint/model-00002-of-00003.safetensors" --offset 8 --length 76; echo
echo "== piped to node 8, without a file between"
"$ucxio" pipe receive 2>meeting | tar x -C node8 & receiver=$!
until grep -q 'ucx://' meeting; do sleep 0.05; done
tar c "$checkpoint" | "$ucxio" pipe send "$(grep -o 'ucx://[^ ]*' meeting)"
wait "$receiver"
diff -r "$checkpoint" "node8/$checkpoint"
echo "== a writer that dies: the reader does not take it for the end"
"$ucxio" pipe receive 2>meeting >half & receiver=$!
until grep -q 'ucx://' meeting; do sleep 0.05; done
mkfifo slow; exec 3<>slow
"$ucxio" pipe send "$(grep -o 'ucx://[^ ]*' meeting)" <slow & sender=$!
printf 'half of it' >&3
until [ -s half ]; do sleep 0.05; done
kill -KILL "$sender"; wait "$sender" 2>/dev/null || true
code=0; wait "$receiver" || code=$?
[ "$code" = 7 ]
cat meeting; echo "== done"
