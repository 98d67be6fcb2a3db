// The calls of `remote_region` beyond one read, one write and a flush.
#include <mutex>
#include <string>
#include <utility>

#include "base/error_text.hpp"
#include "connection/posted_operations.hpp"
#include "region/remote/region_batch.hpp"
#include "region/remote/remote_region_core.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx {
namespace {

using detail::core_access;
using region_pointer = std::shared_ptr<detail::remote_region_core>;

/// Starts an operation by `call`, under the worker's lock, and makes a request of what comes of it.
template <class Call>
request start(const region_pointer& core, const char* what, Call call) {
  if (!core) return detail::failed_request(errc::closed, std::string(what) + "no region");
  const std::lock_guard guard(core->endpoint().worker().lock());
  std::error_code ec;
  if (detail::operation* started = call(*core, ec)) return core_access::make_request(started);
  return ec ? detail::failed_request(ec, what + core->description() + detail::lacking(ec))
            : request();
}

/// Returns when one more may be posted.
void await_room(const region_pointer& core, const detail::posted_operations& posted,
                const io_options& options, std::error_code& ec) {
  detail::worker_core& worker = core->endpoint().worker();
  detail::clock::time_point until;
  {
    const std::lock_guard guard(worker.lock());
    if (!posted.full()) return;
    until = worker.deadline_after(options.timeout);
  }
  if (worker.in_handler()) {
    ec = errc::busy;
  } else if (!worker.wait_until(until, [&] { return !posted.full(); })) {
    ec = errc::timed_out;
  }
}

template <class Call>
void post(const region_pointer& core, detail::posted_operations* posted, const io_options& options,
          std::error_code& ec, Call call) {
  ec.clear();
  if (!core) {
    ec = errc::closed;
    return;
  }
  await_room(core, *posted, options, ec);
  if (ec) return;
  const std::lock_guard guard(core->endpoint().worker().lock());
  if (detail::operation* started = call(*core, ec)) posted->post(*started, core->endpoint());
}

[[noreturn]] void fail(std::error_code ec, const char* what, std::size_t length,
                       std::uint64_t offset, const remote_region& region) {
  throw error(ec, std::string(what) + std::to_string(length) + " bytes at offset " +
                      std::to_string(offset) + " of " + region.description() + detail::lacking(ec));
}

}  // namespace

void remote_region::post_read_at(std::uint64_t offset, std::span<std::byte> into,
                                 const io_options& options) {
  std::error_code ec;
  post_read_at(offset, into, ec, options);
  if (ec) fail(ec, "posting a read of ", into.size(), offset, *this);
}

void remote_region::post_read_at(std::uint64_t offset, std::span<std::byte> into,
                                 std::error_code& ec, const io_options& options) {
  post(core_, posted_.get(), options, ec, [&](auto& core, std::error_code& why) {
    return core.start_read(offset, into, options, why);
  });
}

void remote_region::post_write_at(std::uint64_t offset, std::span<const std::byte> from,
                                  const io_options& options) {
  std::error_code ec;
  post_write_at(offset, from, ec, options);
  if (ec) fail(ec, "posting a write of ", from.size(), offset, *this);
}

void remote_region::post_write_at(std::uint64_t offset, std::span<const std::byte> from,
                                  std::error_code& ec, const io_options& options) {
  post(core_, posted_.get(), options, ec, [&](auto& core, std::error_code& why) {
    return core.start_write(tracker_, offset, from, options, why);
  });
}

request remote_region::start_read_batch(std::span<const read_piece> pieces,
                                        const io_options& options) {
  return start(core_, "batch of reads of ", [&](auto& core, std::error_code& ec) {
    return detail::start_read_batch(core, pieces, options, ec);
  });
}

void remote_region::read_batch(std::span<const read_piece> pieces, const io_options& options) {
  start_read_batch(pieces, options).wait();
}

void remote_region::read_batch(std::span<const read_piece> pieces, std::error_code& ec,
                               const io_options& options) {
  start_read_batch(pieces, options).wait(ec);
}

request remote_region::start_write_batch(std::span<const write_piece> pieces,
                                         const io_options& options) {
  return start(core_, "batch of writes to ", [&](auto& core, std::error_code& ec) {
    return detail::start_write_batch(core, tracker_, pieces, options, ec);
  });
}

void remote_region::write_batch(std::span<const write_piece> pieces, const io_options& options) {
  start_write_batch(pieces, options).wait();
}

void remote_region::write_batch(std::span<const write_piece> pieces, std::error_code& ec,
                                const io_options& options) {
  start_write_batch(pieces, options).wait(ec);
}

request remote_region::start_atomic(std::uint64_t offset, const atomic_access& wanted,
                                    std::span<std::byte> previous, const io_options& options) {
  return start(core_, "atomic access to ", [&](auto& core, std::error_code& ec) {
    return core.start_atomic(offset, wanted, previous, options, ec);
  });
}

request remote_region::start_notify(std::uint64_t value, const io_options& options) {
  return start(core_, "notification of the owner of ", [&](auto& core, std::error_code& ec) {
    return core.start_notify(tracker_, posted_, value, options, ec);
  });
}

void remote_region::notify(std::uint64_t value, const io_options& options) {
  start_notify(value, options).wait();
}

void remote_region::notify(std::uint64_t value, std::error_code& ec, const io_options& options) {
  start_notify(value, options).wait(ec);
}

}  // namespace ucx
