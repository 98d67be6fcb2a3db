#include "ucp/allowed_transports.hpp"

#include <unistd.h>

#include <cstdint>

#include "ucp/resource_error.hpp"

namespace ucx::detail {

allowed_transports::allowed_transports(version_number version) {
  // UCX writes to what it makes in `/dev/shm`, and makes no worker where that may not be so long.
  const std::uint64_t longest = longest_file();
  const bool too_short = longest < ample_shared_memory;
  value_ = transport_list(too_short ? "^posix" : "all").kept_to_the_user(version);
  if (!too_short) return;
  withheld_.push_back({"posix",
                       "UCX makes files of its memory, in /dev/shm, and files may have " +
                           std::to_string(longest) +
                           " bytes; raise the limit to 128 MiB (ulimit -f)",
                       true});
}

allowed_transports::allowed_transports(const std::string& asked, asked_by whom,
                                       version_number version) {
  transport_list list(asked);
  if (whom == asked_by::context_options) withhold_deadly_one(list, version);
  value_ = list.kept_to_the_user(version);
  withhold_open_ones(list);
}

/// From 1.14 to 1.21 CMA ends a reader whose owner has died (measured with 1.18.1), and is taken
/// even where shared memory would do. It is never all that a list names: nothing else opens
/// connections.
void allowed_transports::withhold_deadly_one(transport_list& asked, version_number version) {
  const bool deadly = version >= version_number{1, 14, 0} && version < version_number{1, 22, 0};
  if (!deadly || !asked.remove("cma")) return;
  withheld_.push_back({"cma",
                       "with UCX " + to_string(version) +
                           " it ends a reader whose owner has died, which UCX 1.22 does not do",
                       false});
}

void allowed_transports::withhold_open_ones(const transport_list& asked) {
  const auto is_withheld = [&](const char* name) { return asked.allows(name) && !allows(name); };
  if (is_withheld("sysv")) {
    withheld_.push_back({"sysv",
                         "whoever has this process's group may write what UCX shares by it; it is "
                         "used where it is named",
                         true});
  }
  if (is_withheld("xpmem") && ::access("/dev/xpmem", F_OK) == 0) {
    withheld_.push_back({"xpmem",
                         "by it UCX gives other processes of the user all memory of this one; it "
                         "is used where it is named",
                         true});
  }
}

}  // namespace ucx::detail
