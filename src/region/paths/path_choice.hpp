// Which way the bytes of a region move.
#pragma once

#include <memory>
#include <string>

#include "base/owned_descriptor.hpp"
#include "base/result.hpp"
#include "region/paths/transfer_path.hpp"
#include "ucx/access.hpp"

namespace ucx::detail {

/// The path that was chosen, and in words why the others do not lead there. A text is empty where
/// its path is in use, or was not tried.
struct path_choice {
  std::unique_ptr<transfer_path> path = {};  ///< None: by message.
  std::string not_mapped = {};
  std::string not_read = {};  ///< By this process, or its driver, where the owner has it.
  std::string not_rma = {};
  bool asked_for = false;  ///< By name, so that no other was tried.
};

/// Chooses a path for `region`: the first of mapped, CUDA IPC or CMA, RMA and message that leads
/// there. If `wanted` names a way, only that one is tried. If `wanted` is automatic, the
/// environment's `UCXIO_TRANSFER_METHOD` may name one. `file` is what the owner has passed of the
/// region's memory, if anything. Logs where the path is less than could be expected.
/// A foreign region is moved by RMA, or not at all; `trusted` says that its owner is.
/// Errors: bad_configuration (`UCXIO_TRANSFER_METHOD`); of the way that was wanted;
/// feature_disabled.
result<path_choice> choose_path(peer_region& region, transfer_method wanted, bool trusted,
                                owned_descriptor file);

}  // namespace ucx::detail
