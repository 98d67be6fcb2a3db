#!/usr/bin/env bash
# Plants one violation of each rule of check_layers.sh in a small tree, and expects it to be found.
set -euo pipefail
check=$(cd "$(dirname "$0")" && pwd)/check_layers.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

fresh_tree() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree"/{include/ucx,src/detail,streams,tools,examples}
  echo 'ucx/stream.hpp' >"$tree/streams/CMakeLists.txt"
  printf '#include <span>\n#include "ucx/error.hpp"\n' >"$tree/include/ucx/region.hpp"
  printf '#include "ucx/region.hpp"\n' >"$tree/include/ucx/stream.hpp"
  printf '#include "detail/core.hpp"\n#include <unistd.h>\n' >"$tree/src/region.cpp"
  printf '#include <ucp/api/ucp.h>\n// ucp_init() is called elsewhere.\n' >"$tree/src/detail/core.hpp"
  printf '#include <ucp/api/ucp.h>\nvoid f() { ucp_cleanup(0); }\n' >"$tree/src/detail/ucp_api.cpp"
  printf '#include "engine.hpp"\n#include "ucx/stream.hpp"\n' >"$tree/streams/stream.cpp"
  touch "$tree/streams/engine.hpp" "$tree/tools/output.hpp"
  printf '#include <CLI/CLI.hpp>\n#include "output.hpp"\n#include "ucx/stream.hpp"\n' >"$tree/tools/main.cpp"
  printf '#include <ucx/stream.hpp>\n' >"$tree/examples/read.cpp"
}
catches() { # FILE LINE
  fresh_tree
  echo "$2" >>"$tree/$1"
  if "$check" "$tree" 2>"$tree/said"; then echo "not caught in $1: $2"; exit 1; fi
  grep -q "^$1:" "$tree/said" || { echo "caught, but not in $1: $(cat "$tree/said")"; exit 1; }
}

fresh_tree
"$check" "$tree" || { echo "a tidy tree is refused"; exit 1; }
catches include/ucx/region.hpp '#include <ucp/api/ucp.h>'
catches include/ucx/region.hpp '#include <cuda_runtime.h>'
catches include/ucx/region.hpp '#include <boost/asio.hpp>'
catches include/ucx/region.hpp '#include <sys/socket.h>'
catches include/ucx/region.hpp '#include "detail/core.hpp"'
catches include/ucx/region.hpp '#include "ucx/stream.hpp"'
catches src/detail/core.hpp '#include "ucx/stream.hpp"'
catches src/region.cpp '#include "../streams/engine.hpp"'
catches src/region.cpp '#include <ucp/api/ucp.h>'
catches src/region.cpp 'void g() { ucp_worker_progress(0); }'
catches streams/stream.cpp '#include "detail/core.hpp"'
catches streams/stream.cpp '#  include <ucs/type/status.h>'
catches streams/stream.cpp '#include "../src/detail/core.hpp"'
catches streams/stream.cpp '#include <fmt/format.h>'
catches src/region.cpp '#include <nlohmann/json.hpp>'
catches include/ucx/region.hpp '#include <CLI/CLI.hpp>'
catches tools/main.cpp '#include "detail/core.hpp"'
catches tools/main.cpp '#include "../src/detail/core.hpp"'
catches tools/main.cpp '#include "engine.hpp"'
catches tools/main.cpp '#include <ucp/api/ucp.h>'
catches tools/main.cpp 'void g() { ucp_worker_progress(0); }'
catches examples/read.cpp '#include "detail/core.hpp"'
catches examples/read.cpp '#include "core.hpp"'
