#include "process/core_dumps.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <CLI/CLI.hpp>

namespace ucx::tool {
namespace {

void forbid_core_dumps() {
  const ::rlimit none = {};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_DUMPABLE, 0);
}

}  // namespace

void add_no_core(CLI::App& command) {
  command.add_flag_callback(
      "--no-core", &forbid_core_dumps,
      "make no core dump, and let no process of this user look into this one");
}

}  // namespace ucx::tool
