#!/usr/bin/env bash
# Plants one violation of each rule of check_layers.sh in a small tree, and expects it to be found.
set -euo pipefail
check=$(cd "$(dirname "$0")" && pwd)/check_layers.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

fresh_tree() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree"/{include/ucx/experimental,include/compatibility/ucx,src/{base,ucp,worker,server,client,api},streams/{engine,files},tools/{output,commands},examples}
  echo 'ucx/stream.hpp' >"$tree/streams/CMakeLists.txt"
  printf '#include <span>\n#include "ucx/experimental/feed.hpp"\n#include "ucx/old_names/region.ipp"\n' >"$tree/include/ucx/region.hpp"
  printf '#include "ucx/error.hpp"\n' >"$tree/include/ucx/experimental/feed.hpp"
  printf '#include "ucx/region.hpp"\n' >"$tree/include/compatibility/ucx/old.hpp"
  printf '#include "ucx/region.hpp"\n' >"$tree/include/ucx/stream.hpp"
  printf '#include "worker/core.hpp"\n#include <unistd.h>\n' >"$tree/src/api/region.cpp"
  printf '#include <ucp/api/ucp.h>\n// ucp_init() is called elsewhere.\n#include "base/list.hpp"\n' >"$tree/src/worker/core.hpp"
  printf '#include <list>\n' >"$tree/src/base/list.hpp"
  printf '#include "base/list.hpp"\n' >"$tree/src/server/server.hpp"
  printf '#include "worker/core.hpp"\n' >"$tree/src/client/client.hpp"
  printf '#include <ucp/api/ucp.h>\nvoid f() { ucp_cleanup(0); }\n' >"$tree/src/ucp/ucp_api.cpp"
  printf '#include "engine/engine.hpp"\n#include "ucx/stream.hpp"\n' >"$tree/streams/files/stream.cpp"
  touch "$tree/streams/engine/engine.hpp" "$tree/tools/output/output.hpp" "$tree/tools/commands/cat.hpp"
  printf '#include <CLI/CLI.hpp>\n#include "output/output.hpp"\n#include "ucx/stream.hpp"\n' >"$tree/tools/main.cpp"
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
catches include/ucx/region.hpp '#include "worker/core.hpp"'
catches include/ucx/region.hpp '#include "ucx/stream.hpp"'
catches include/ucx/experimental/feed.hpp '#include "ucx/stream.hpp"'
catches include/compatibility/ucx/old.hpp '#include "ucx/stream.hpp"'
catches include/ucx/region.hpp '#include "ucx/old.hpp"'
catches src/worker/core.hpp '#include "ucx/old.hpp"'
catches examples/read.cpp '#include <ucx/old.hpp>'
catches src/worker/core.hpp '#include "ucx/stream.hpp"'
catches src/base/list.hpp '#include "worker/core.hpp"'
catches src/base/list.hpp '#include <ucp/api/ucp.h>'
catches src/worker/core.hpp '#include "api/region.hpp"'
catches src/worker/core.hpp '#include "elsewhere/region.hpp"'
catches src/client/client.hpp '#include "server/server.hpp"'
catches src/server/server.hpp '#include "client/client.hpp"'
catches streams/engine/engine.hpp '#include "files/stream.hpp"'
catches tools/output/output.hpp '#include "commands/cat.hpp"'
catches src/api/region.cpp '#include "../streams/engine/engine.hpp"'
catches src/api/region.cpp '#include <ucp/api/ucp.h>'
catches src/api/region.cpp '#include "ucx/old_names/region.ipp"'
catches src/api/region.cpp 'void g() { ucp_worker_progress(0); }'
catches streams/files/stream.cpp '#include "worker/core.hpp"'
catches streams/files/stream.cpp '#  include <ucs/type/status.h>'
catches streams/files/stream.cpp '#include "../src/worker/core.hpp"'
catches streams/files/stream.cpp '#include <fmt/format.h>'
catches src/api/region.cpp '#include <nlohmann/json.hpp>'
catches include/ucx/region.hpp '#include <CLI/CLI.hpp>'
catches tools/main.cpp '#include "worker/core.hpp"'
catches tools/main.cpp '#include "../src/worker/core.hpp"'
catches tools/main.cpp '#include "engine/engine.hpp"'
catches tools/main.cpp '#include <ucp/api/ucp.h>'
catches tools/main.cpp 'void g() { ucp_worker_progress(0); }'
catches examples/read.cpp '#include "worker/core.hpp"'
catches examples/read.cpp '#include "core.hpp"'
