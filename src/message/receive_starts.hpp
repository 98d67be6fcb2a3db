// How the public handles start receives.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "ucx/endpoint.hpp"
#include "ucx/receive_target.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

struct arrived_message;
class endpoint_core;
class worker_core;

/// Starts a receive of a message with a tag from `from`, or from anybody.
request start_tagged(worker_core& worker, const std::shared_ptr<endpoint_core>& from,
                     const tag_match& wanted, const receive_target& into,
                     const io_options& options);

/// Starts the receive of a message that the program holds.
request start_of(const std::shared_ptr<worker_core>& worker, arrived_message* held,
                 const receive_target& into, const io_options& options);

/// Starts a receive from the byte stream of `from`.
request start_stream(const std::shared_ptr<endpoint_core>& from, stream_amount amount,
                     std::span<std::byte> into, const io_options& options);

}  // namespace ucx::detail
