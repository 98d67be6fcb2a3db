#!/usr/bin/env bash
# Installs a build into a folder of its own, moves that folder, and builds and runs a program against
# it: once through find_package(ucxio), once through pkg-config. README.md's programs must compile too,
# and read what they promise.
#   check.sh BUILD_DIR WORK_DIR COMPILER README
set -euo pipefail
build=$1 work=$2 compiler=$3 readme=$4
here=$(cd "$(dirname "$0")" && pwd)
export UCX_HANDLE_ERRORS=none

rm -rf "$work"
mkdir -p "$work/readme"
cmake --install "$build" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/installed"
pc=$(find "$work/installed" -name ucxio.pc)
libraries=$(cd "$(dirname "$pc")/.." && pwd)

echo "== a build of which nothing was built installs nothing"
unbuilt="$work/not built, ü"
cmake -G "Ninja Multi-Config" -S "$here/../.." -B "$unbuilt" -DCMAKE_CXX_COMPILER="$compiler" -DUCXIO_BUILD_TESTS=OFF \
  -DUCXIO_BUILD_EXAMPLES=OFF -DUCXIO_BUILD_BENCHMARKS=OFF -DUCXIO_BUILD_DOCS=OFF >"$work/unbuilt.log"
if cmake --install "$unbuilt" --config Release --prefix "$work/nothing" >>"$work/unbuilt.log" 2>&1 || [ -e "$work/nothing" ] ||
  ! grep -q "libucxio-core" "$work/unbuilt.log"; then
  cat "$work/unbuilt.log"
  exit 1
fi

# Each block of README.md that has a main() becomes a file.
awk -v folder="$work/readme" '
  /^```cpp/ { inside = 1; text = ""; next }
  /^```/    { if (inside && text ~ /int main\(/) printf "%s", text > (folder "/readme" ++n ".cpp"); inside = 0 }
  inside    { text = text $0 "\n" }' "$readme"
programs=$(find "$work/readme" -name '*.cpp' | sort | paste -sd ';')
[ -n "$programs" ] || { echo "README.md has no program"; exit 1; }

if [ -e "$build/bin/ucxio" ]; then
  echo "== the tool"
  "$work/installed/bin/ucxio" --version
fi

echo "== find_package(ucxio)"
cmake -G Ninja -S "$here" -B "$work/by-cmake" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$work/installed" -DREADME_PROGRAMS="$programs" >"$work/configure.log"
cmake --build "$work/by-cmake" -j2
"$work/by-cmake/consumer"
if [ -e "$work/by-cmake/consumer-of-boost" ]; then "$work/by-cmake/consumer-of-boost" "$work/text.gz"; fi

echo "== README.md's reader, of a file and of what README.md's server shows"
printf 'first line\nsecond line\n' >"$work/notes.txt"
"$work/by-cmake/readme1" "$work/notes.txt" | cmp - "$work/notes.txt"
coproc server { exec timeout 120 "$work/by-cmake/readme2"; }
# shellcheck disable=SC2154 # coproc names it
server_pid=$server_PID
read -r -t 60 url <&"${server[0]}"
# A million numbers of eight bytes, none a line feed; the reader ends its only line with one.
count=$(timeout 60 "$work/by-cmake/readme1" "$url" | wc -c)
[ "$count" = 8000001 ] || { echo "it read $count bytes from $url"; exit 1; }
echo >&"${server[1]}"
wait "$server_pid"

echo "== pkg-config"
export PKG_CONFIG_PATH="$(dirname "$pc")${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
pkg-config --exists --print-errors 'ucxio >= 0.1'

echo "== each name that stays for one version compiles, with a warning, and goes by UCXIO_OLD_NAMES=0"
check_old_names() { # FURTHER FLAGS
  # shellcheck disable=SC2046 # several words are meant
  "$compiler" -std=c++20 -fsyntax-only $(pkg-config --cflags ucxio) "$@" "$here/old_names.cpp"
}
check_old_names 2>"$work/old_names.log"
unseen=()
echo '#include <boost/iostreams/categories.hpp>' | "$compiler" -x c++ -fsyntax-only - 2>/dev/null || unseen=(--exclude='boost_*')
declared=$(grep -rho "${unseen[@]}" '\[\[deprecated' "$work/installed/include/ucx" | wc -l)
told=$(grep -c 'warning:.*is deprecated' "$work/old_names.log" || true)
if [ "$told" -lt "$declared" ] || grep 'warning:' "$work/old_names.log" | grep -v 'is deprecated'; then
  echo "$told warnings of $declared old names"
  exit 1
fi
if check_old_names -DUCXIO_OLD_NAMES=0 2>/dev/null; then
  echo "old names are there without being wanted"
  exit 1
fi

echo "== each old path is in that program, and goes by UCXIO_OLD_NAMES=0"
for header in "$here"/../../include/compatibility/ucx/*.hpp; do
  path=ucx/${header##*/}
  grep -qF "#include <$path>" "$here/old_names.cpp" || { echo "old_names.cpp does not include <$path>"; exit 1; }
  [ -e "$work/installed/include/$path" ] || { echo "<$path> is not installed"; exit 1; }
  grep -q '#error' "$header" || continue # it has old names alone
  # shellcheck disable=SC2046 # several words are meant
  if echo "#include <$path>" | "$compiler" -std=c++20 -fsyntax-only $(pkg-config --cflags ucxio) -DUCXIO_OLD_NAMES=0 \
    -x c++ - 2>/dev/null; then
    echo "<$path> is there without being wanted"
    exit 1
  fi
done

static=
[ -e "$libraries/libucxio-core.so" ] || static=--static
# shellcheck disable=SC2046 # several words are meant
"$compiler" -std=c++20 "$here/main.cpp" -o "$work/by-pkg-config" $(pkg-config $static --cflags --libs ucxio)
LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$work/by-pkg-config"
