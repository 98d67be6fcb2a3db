// The options and results of a client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ucx/context.hpp"
#include "ucx/entry.hpp"
#include "ucx/version.hpp"
#include "ucx/worker_options.hpp"

namespace ucx {

/// The options of a client.
struct client_options {
  /// UCX's transports, devices and configuration. Without named devices, UCX may use the interface
  /// that leads to the server and, unless that is loopback, its RDMA ports (`docs/how-to/rdma.md`).
  context_options context = {};
  /// Progress and deadlines. With `automatic` the caller's calls drive progress, from any thread.
  worker_options worker = {};
};

/// Counters of a client.
struct client_statistics {
  std::uint64_t opens = 0;          ///< Regions that were opened.
  std::uint64_t requests = 0;       ///< Questions to the server.
  std::uint64_t failures = 0;       ///< Questions that got an error, or no answer.
  staging_statistics staging = {};  ///< Of device memory here, of the first connection.
};

/// The options of a commit.
struct commit_options {
  bool durable = false;  ///< The file and its name are on the device.
  /// The writing ends: when the commit returns, other writers may open the name. If it succeeds,
  /// the region is closed, for every handle that shares it. Otherwise it stays open, and can be
  /// committed again if it was not thrown away (busy; io_error after it got its name).
  bool close = false;
};

/// The files and directories directly in a directory of a store.
struct directory_listing {
  std::vector<entry> entries = {};  ///< By name.
  /// The number of further names that are not served. They are symbolic links, special files, and
  /// names that are not UTF-8 or too long. 0 where the server is from before it told.
  std::uint64_t unserved = 0;

#if UCXIO_OLD_NAMES
#include "ucx/old_names/directory_listing.ipp"
#endif
};

/// Gets entries as they come, some hundred at a time, in order. Returns whether to go on.
using entry_visitor = std::function<bool(std::vector<entry>&&)>;

}  // namespace ucx
