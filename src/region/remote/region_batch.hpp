// Batches: many pieces of one region, read or written as one operation.
#pragma once

#include <memory>
#include <span>
#include <system_error>

#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "worker/operation.hpp"

namespace ucx::detail {

class remote_region_core;
class write_tracker;

// Each checks every piece before anything is sent, and returns nothing if there is nothing to do or
// `ec` says why not. By message small pieces share messages; large ones, and those that move by
// RMA, go one by one.

operation* start_read_batch(remote_region_core& region, std::span<const read_piece> pieces,
                            const io_options& options, std::error_code& ec);
operation* start_write_batch(remote_region_core& region,
                             const std::shared_ptr<write_tracker>& tracker,
                             std::span<const write_piece> pieces, const io_options& options,
                             std::error_code& ec);

}  // namespace ucx::detail
