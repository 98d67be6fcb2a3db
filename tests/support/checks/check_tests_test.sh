#!/usr/bin/env bash
# Leaves a test out of a small tree in each way that check_tests.sh looks for, and expects it to be found.
set -euo pipefail
check=$(cd "$(dirname "$0")" && pwd)/check_tests.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{unit/{base,store},device,gpu,fabric,conformance,process,tool/copying}
cat >"$tree/CMakeLists.txt" <<'LIST'
set(unit_tests_with_boost "")
set(unit_tests_with_boost boost_test.cpp
                          boosts_test.cpp)
ucxio_add_tests(
  unit
  TIMEOUT 300
  SOURCES
    base/url_test.cpp
    store/store_test.cpp
    # old_test.cpp
    ${unit_tests_with_boost}
  LIBRARIES ucxio)
  ucxio_add_tests(
    tool
    SOURCES
      cat_test.cpp)
LIST
touch "$tree"/unit/{store/store,base/url,boost,boosts}_test.cpp "$tree"/tool/cat_test.cpp

"$check" "$tree" || { echo "finds something where there is nothing"; exit 1; }
for left_out in tool/store_test.cpp fabric/url_test.cpp unit/cat_test.cpp unit/old_test.cpp \
  unit/store_test.cpp unit/base/store_test.cpp tool/copying/cat_test.cpp \
  {device,gpu,conformance,process}/new_test.cpp; do
  touch "$tree/$left_out"
  if "$check" "$tree" >"$tree/said" || ! grep -q "^$left_out is not built" "$tree/said"; then
    echo "does not find that $left_out is left out"
    exit 1
  fi
  rm "$tree/$left_out"
done
