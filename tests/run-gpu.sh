#!/usr/bin/env bash
# Packs the tests, benchmarks and examples of GPU memory into a folder that can be taken to another
# machine, with the libraries that they need and a UCX that knows CUDA; and runs them where a GPU is.
#   tests/run-gpu.sh [FOLDER [BUILD]]      (default: build/gpu, of build/release)
# A BUILD that is named is packed as it is. FOLDER/run.sh runs them again, there or elsewhere. Ends
# with 0 when they passed, and with 77, saying so, when nothing was run because there is no GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build/gpu}
build=${2:-build/release}
programs=(ucxio-gpu-tests ucxio-test-peer gpu_benchmark gpu_to_gpu gpu_checkpoint gpu_load ucxio)

if [ $# -lt 2 ]; then
  cmake/setup.sh gpu
  mkdir -p "$build"
  cmake --preset release -DUCXIO_BUILD_BENCHMARKS=ON >"$build/configure.log" 2>&1 ||
    { cat "$build/configure.log" >&2; exit 1; }
  cmake --build "$build" --target ucxio-gpu-tests ucxio-test-peer gpu_benchmark example-gpu_to_gpu \
    example-gpu_checkpoint example-gpu_load ucxio-tool
fi

rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/lib"
for program in "${programs[@]}"; do cp "$build/bin/$program" "$folder/bin/"; done
# Everything but UCX, which comes from the package, and the C library, which is the system's.
ldd "$folder"/bin/* | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
  grep -vE '/lib(c|m|rt|dl|pthread|resolv|ucp|uct|ucs|ucm)\.so' | xargs cp -L -t "$folder/lib"
wheel=$(tests/support/run/newest_ucx.sh)
cp -r "$wheel/lib" "$folder/ucx"
# What UCX's modules for CUDA need: without libcudart they are not loaded, and nothing says so.
cp -L "${wheel%/*}"/libucx_cu13.libs/*.so* "$folder/lib/"
# What is only linked against, the same under other names, and what debuggers read.
find "$folder/ucx" \( -name '*.a' -o -name '*.la' -o -name '*.so' -o -name '*.so.0.0.0' \) -delete
rm -rf "$folder/ucx/cmake" "$folder/ucx/pkgconfig"
find "$folder" \( -name '*.so*' -o -path "$folder/bin/*" \) -exec strip --strip-debug {} +
cat >"$folder/run.sh" <<'RUN'
#!/usr/bin/env bash
# Runs what is packed here: the tests, the examples, and the benchmarks, whose options are "$@".
set -uo pipefail
cd "$(dirname "$0")"
export LD_LIBRARY_PATH=$PWD/lib:$PWD/ucx${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} UCX_HANDLE_ERRORS=none
failed=0

bin/ucxio-gpu-tests --gtest_brief=1
outcome=$?
if [ $outcome = 77 ]; then
  echo "run-gpu: no GPU here: NOTHING WAS RUN"
  exit 77
fi
[ $outcome = 0 ] || failed=1
echo "=== $(date -u +%F), $(uname -m), $(bin/ucxio --version | tr '\n' ' ')"
echo "UCX's transports for CUDA: $(bin/ucxio info | grep -oE '(cuda|gdr)[a-z_]*' | sort -u | tr '\n' ' ')"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null || true

for example in gpu_to_gpu gpu_checkpoint; do
  echo "=== $example"
  timeout 120 bin/$example || failed=1
done
echo "=== gpu_load"
coproc server { exec bin/ucxio serve --ucx --quiet model=bin/ucxio-gpu-tests --gpu-copy tensor=bin/ucxio; }
pid=$server_PID
read -r -t 60 -u "${server[0]}" url || failed=1
timeout 120 bin/gpu_load "$url/model" || failed=1
timeout 120 bin/ucxio cat "$url/tensor" | cmp - bin/ucxio || failed=1
kill $pid && wait $pid

echo "=== gpu_benchmark"
timeout 1800 bin/gpu_benchmark "$@" || failed=1
[ $failed = 0 ] && echo "run-gpu: all passed" || echo "run-gpu: FAILED"
exit $failed
RUN
chmod +x "$folder/run.sh"
echo "packed: $folder ($(du -sh "$folder" | cut -f1))"
"$folder/run.sh"
