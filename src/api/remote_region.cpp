#include "ucx/remote_region.hpp"

#include <mutex>
#include <string>
#include <utility>

#include "base/error_text.hpp"
#include "base/forked_child.hpp"
#include "base/result.hpp"
#include "connection/posted_operations.hpp"
#include "connection/write_tracker.hpp"
#include "region/remote/region_batch.hpp"
#include "region/remote/remote_region_core.hpp"
#include "ucx/error.hpp"
#include "worker/cancel_and_wait.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx {
namespace {

using detail::core_access;
using detail::failure;
using detail::result;
using region_pointer = std::shared_ptr<detail::remote_region_core>;

result<region_pointer> open(const endpoint& connection, const remote_descriptor& descriptor,
                            const remote_region_options& options) {
  const std::shared_ptr<detail::endpoint_core>& core = core_access::core(connection);
  if (core) return detail::remote_region_core::make(core, descriptor, options);
  return failure{errc::closed,
                 "opening a region over a connection that was moved from, or not made"};
}

/// Begins the error text of a call that ended before anything was sent.
std::string attempt(const char* what, std::size_t length, std::uint64_t offset,
                    const std::string& region) {
  return std::string(what) + std::to_string(length) + " bytes at offset " + std::to_string(offset) +
         " of " + region;
}

result<std::span<std::byte>> in_place(const region_pointer& core, std::uint64_t offset,
                                      std::size_t length, access wanted) {
  if (!core) return failure{errc::closed};
  const std::lock_guard guard(core->endpoint().worker().lock());
  const auto first = core->view(offset, length, wanted);
  if (!first) return first.why();
  return std::span(*first, length);
}

std::span<std::byte> in_place_of(const remote_region& region, const region_pointer& core,
                                 std::uint64_t offset, std::size_t length, access wanted,
                                 std::error_code& ec) {
  const auto found = in_place(core, offset, length, wanted);
  detail::end_with(found ? std::error_code() : found.why().code, ec, [&] {
    std::string what = attempt("view of ", length, offset, region.description());
    if (!found.why().text.empty()) what += ": " + found.why().text;
    return what;
  });
  return found ? *found : std::span<std::byte>();
}

/// Starts an operation by `call`, under the worker's lock, and makes a request of what comes of it.
template <class Call>
request start(const region_pointer& core, const char* what, Call call) {
  if (!core) return detail::failed_request(errc::closed, std::string(what) + "no region");
  const std::lock_guard guard(core->endpoint().worker().lock());
  std::error_code ec;
  if (detail::operation* started = call(*core, ec)) return core_access::make_request(started);
  return ec ? detail::failed_request(ec, what + core->description() + detail::lacking(ec),
                                     core->endpoint().ucx_status_of(ec))
            : request();
}

using tracker_pointer = std::shared_ptr<detail::write_tracker>;
using posted_pointer = std::shared_ptr<detail::posted_operations>;

/// Starts an operation by `call` and posts it. REQUIRES: the worker's lock.
template <class Call>
std::error_code post_now(detail::remote_region_core& core, const tracker_pointer& tracker,
                         detail::posted_operations& posted, const Call& call) {
  std::error_code ec;
  detail::operation* const started = call(core, tracker, ec);
  if (started != nullptr) posted.post(*started, core.endpoint());
  return ec;
}

/// Starts and posts an operation of the handle that has `core`, `tracker` and `posted`, when there
/// is room. Returns why nothing was posted. A handler may destroy that handle during a wait: then
/// `kept` is the core.
template <class Call>
std::error_code post(const region_pointer& core, const tracker_pointer& tracker,
                     const posted_pointer& posted, const io_options& options, region_pointer& kept,
                     const Call& call) {
  if (!core) return errc::closed;
  detail::worker_core& worker = core->endpoint().worker();
  detail::clock::time_point until;
  {
    const std::lock_guard guard(worker.lock());
    if (!posted->full()) return post_now(*core, tracker, *posted, call);
    until = worker.deadline_after(options.timeout);
  }
  if (worker.in_handler()) return errc::busy;
  kept = core;
  const tracker_pointer tracked_by = tracker;
  const posted_pointer among = posted;
  const auto is_over = [&] { return among->is_abandoned() || !among->full(); };
  if (!worker.wait_until(until, is_over)) return errc::timed_out;
  const std::lock_guard guard(worker.lock());
  if (among->is_abandoned()) return errc::canceled;
  return post_now(*kept, tracked_by, *among, call);
}

}  // namespace

remote_region::remote_region(const endpoint& connection, const remote_descriptor& descriptor,
                             const remote_region_options& options, std::error_code& ec)
    : core_(open(connection, descriptor, options).or_end(ec)) {
  if (core_) make_books();
}

remote_region::remote_region(remote_region&& other) noexcept = default;

remote_region& remote_region::operator=(remote_region&& other) noexcept {
  remote_region taken(std::move(other));
  std::swap(core_, taken.core_);
  std::swap(tracker_, taken.tracker_);
  std::swap(posted_, taken.posted_);
  return *this;
}

remote_region::~remote_region() {
  drop_posted();
  detail::leave_to_parent(core_, tracker_, posted_);
}

void remote_region::make_books() {
  tracker_ = std::make_shared<detail::write_tracker>();
  posted_ = std::make_shared<detail::posted_operations>();
}

/// Ends what was posted through this handle: no caller could wait for it any more.
void remote_region::drop_posted() noexcept {
  if (!core_ || !posted_) return;
  const region_pointer kept = core_;
  const posted_pointer posted = posted_;
  detail::cancel_and_wait(*posted, kept->endpoint().worker());
}

remote_region remote_region::share() const {
  remote_region other;
  other.core_ = core_;
  if (core_) other.make_books();
  return other;
}

std::uint64_t remote_region::size() const noexcept { return core_ ? core_->extent().size() : 0; }
std::uint64_t remote_region::max_size() const noexcept {
  return core_ ? core_->extent().limit() : 0;
}
access remote_region::granted() const noexcept {
  return core_ ? core_->descriptor().granted : access::read;
}
memory_kind remote_region::kind() const noexcept {
  return core_ ? core_->descriptor().kind : memory_kind::host;
}
content_id remote_region::content() const noexcept {
  if (!core_) return {};
  const std::lock_guard guard(core_->endpoint().worker().lock());
  return core_->extent().content();
}

bool remote_region::can_refresh_size() const noexcept {
  return core_ && core_->extent().measurable();
}

transfer_method remote_region::transfer_method() const noexcept {
  return core_ ? core_->path().method() : transfer_method::automatic;
}

std::span<const std::byte> remote_region::view(std::uint64_t offset, std::size_t length,
                                               std::error_code& ec) const {
  return in_place_of(*this, core_, offset, length, access::read, ec);
}

std::span<std::byte> remote_region::writable_view(std::uint64_t offset, std::size_t length,
                                                  std::error_code& ec) const {
  return in_place_of(*this, core_, offset, length, access::write, ec);
}

std::string remote_region::why_not(ucx::transfer_method wanted) const {
  if (!core_) return "there is no region";
  const std::lock_guard guard(core_->endpoint().worker().lock());
  return core_->why_not(wanted);
}

request remote_region::start_read_at(std::uint64_t offset, std::span<std::byte> into,
                                     const io_options& options) {
  return start_read_kept(offset, into, nullptr, options);
}

request remote_region::start_read_kept(std::uint64_t offset, std::span<std::byte> into,
                                       const std::shared_ptr<const void>& keeper,
                                       const io_options& options) {
  if (!core_) return detail::failed_request(errc::closed, "read of a region that is not open");
  detail::worker_core& worker = core_->endpoint().worker();
  const std::lock_guard guard(worker.lock());
  std::error_code ec;
  if (detail::operation* started = core_->start_read_kept(offset, into, keeper, options, ec)) {
    return core_access::make_request(started);
  }
  return ec ? detail::failed_request(
                  ec, attempt("read of ", into.size(), offset, description()) + detail::lacking(ec),
                  core_->endpoint().ucx_status_of(ec))
            : request();
}

void remote_region::read_at(std::uint64_t offset, std::span<std::byte> into,
                            const io_options& options, std::error_code& ec) {
  start_read_at(offset, into, options).wait(ec);
}

request remote_region::start_write_at(std::uint64_t offset, std::span<const std::byte> from,
                                      const io_options& options) {
  if (!core_) return detail::failed_request(errc::closed, "write to a region that is not open");
  detail::worker_core& worker = core_->endpoint().worker();
  const std::lock_guard guard(worker.lock());
  std::error_code ec;
  if (detail::operation* started = core_->start_write(tracker_, offset, from, options, ec)) {
    return core_access::make_request(started);
  }
  return ec ? detail::failed_request(
                  ec,
                  attempt("write of ", from.size(), offset, description()) + detail::lacking(ec),
                  core_->endpoint().ucx_status_of(ec))
            : request();
}

void remote_region::write_at(std::uint64_t offset, std::span<const std::byte> from,
                             const io_options& options, std::error_code& ec) {
  start_write_at(offset, from, options).wait(ec);
}

request remote_region::start_flush(const io_options& options) {
  if (!core_) {
    return detail::failed_request(errc::closed, "flush of the writes to a region that is not open");
  }
  detail::worker_core& worker = core_->endpoint().worker();
  const std::lock_guard guard(worker.lock());
  std::error_code ec;
  if (detail::operation* started = core_->start_flush(tracker_, posted_, options, ec)) {
    return core_access::make_request(started);
  }
  if (!ec) return {};
  std::string what = "flush of the writes to " + description();
  if (!tracker_->failed_write().empty()) what.append(": ").append(tracker_->failed_write());
  return detail::failed_request(ec, std::move(what), core_->endpoint().ucx_status_of(ec));
}

void remote_region::flush(const io_options& options, std::error_code& ec) {
  start_flush(options).wait(ec);
}

std::optional<std::uint64_t> remote_region::first_unconfirmed() const {
  if (!core_) return std::nullopt;
  const std::lock_guard guard(core_->endpoint().worker().lock());
  return tracker_->first_unconfirmed();
}

#if UCXIO_OLD_NAMES
std::uint64_t remote_region::unconfirmed() const {
  if (!core_) return 0;
  const std::lock_guard guard(core_->endpoint().worker().lock());
  return tracker_->unconfirmed();
}
#endif

void remote_region::close() noexcept {
  if (!core_) return;
  core_->close();
  core_->endpoint().worker().settle();
}

std::error_code remote_region::status() const noexcept {
  if (!core_) return errc::closed;
  const std::lock_guard guard(core_->endpoint().worker().lock());
  return core_->status();
}

bool remote_region::leaves_reads_at_once() const noexcept {
  return core_ && core_->path().leaves_reads_at_once();
}

std::chrono::steady_clock::time_point remote_region::now() const noexcept {
  return core_ ? core_->endpoint().worker().api().now() : std::chrono::steady_clock::time_point();
}

std::optional<std::uint64_t> remote_region::bytes_in_huge_pages() const {
  return core_ ? core_->path().bytes_in_huge_pages() : std::nullopt;
}

ucp_rkey* remote_region::native_key() const noexcept {
  if (!core_) return nullptr;
  const std::lock_guard guard(core_->endpoint().worker().lock());
  return core_->path().key();
}

std::string remote_region::description() const {
  return core_ ? core_->description() : std::string("no region");
}

// Beyond one read, one write and a flush.

void remote_region::post_read_at(std::uint64_t offset, std::span<std::byte> into,
                                 const io_options& options, std::error_code& ec) {
  region_pointer kept;
  const std::error_code outcome =
      post(core_, tracker_, posted_, options, kept, [&](auto& core, auto&, std::error_code& why) {
        return core.start_read(offset, into, options, why);
      });
  detail::end_with(outcome, ec, [&] {
    return attempt("posting a read of ", into.size(), offset,
                   kept ? kept->description() : description()) +
           detail::lacking(outcome);
  });
}

void remote_region::post_write_at(std::uint64_t offset, std::span<const std::byte> from,
                                  const io_options& options, std::error_code& ec) {
  region_pointer kept;
  const std::error_code outcome =
      post(core_, tracker_, posted_, options, kept,
           [&](auto& core, auto& tracker, std::error_code& why) {
             return core.start_write(tracker, offset, from, options, why);
           });
  detail::end_with(outcome, ec, [&] {
    return attempt("posting a write of ", from.size(), offset,
                   kept ? kept->description() : description()) +
           detail::lacking(outcome);
  });
}

request remote_region::start_read_batch(std::span<const read_piece> pieces,
                                        const io_options& options) {
  return start(core_, "batch of reads of ", [&](auto& core, std::error_code& ec) {
    return detail::start_read_batch(core, pieces, options, ec);
  });
}

void remote_region::read_batch(std::span<const read_piece> pieces, const io_options& options,
                               std::error_code& ec) {
  start_read_batch(pieces, options).wait(ec);
}

request remote_region::start_write_batch(std::span<const write_piece> pieces,
                                         const io_options& options) {
  return start(core_, "batch of writes to ", [&](auto& core, std::error_code& ec) {
    return detail::start_write_batch(core, tracker_, pieces, options, ec);
  });
}

void remote_region::write_batch(std::span<const write_piece> pieces, const io_options& options,
                                std::error_code& ec) {
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

void remote_region::notify(std::uint64_t value, const io_options& options, std::error_code& ec) {
  start_notify(value, options).wait(ec);
}

}  // namespace ucx
