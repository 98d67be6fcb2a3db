#include "region/remote/remote_region_core.hpp"

#include <xxhash.h>

#include <array>
#include <chrono>
#include <mutex>
#include <utility>

#include "connection/flush_operation.hpp"
#include "connection/posted_operations.hpp"
#include "connection/write_tracker.hpp"
#include "cuda/device_copiers.hpp"
#include "cuda/device_pointer.hpp"
#include "region/exposed/atomic_execution.hpp"
#include "region/exposed/write_room.hpp"
#include "region/remote/notify_operation.hpp"
#include "region/remote/region_atomic.hpp"
#include "ucx/error.hpp"
#include "worker/plane_transfer.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// A region's number is unique within one incarnation of the owner only.
content_id content_of(const remote_descriptor& descriptor) noexcept {
  if (descriptor.foreign) return {};  // it is told nothing
  const std::array<std::uint64_t, 2> numbers{descriptor.incarnation, descriptor.region};
  return {XXH3_64bits(numbers.data(), sizeof numbers), descriptor.generation};
}

/// A second context of UCX's may have to be made, and then a byte has to come.
constexpr std::chrono::seconds longest_opening{10};

/// Held by a handle: the connection goes after the region.
struct lease {
  std::shared_ptr<endpoint_core> connection;
  std::shared_ptr<remote_region_core> region;
};

/// Finds who copies at `where`, and marks where the program's stream is now.
result<device_bytes> on_device(worker_core& worker, std::span<std::byte> where,
                               const io_options& options) {
  auto copier = worker.copiers().of(where.data());
  if (!copier) return copier.why();
  device_bytes found{where, *std::move(copier), nullptr};
  if (options.cuda_stream == nullptr) return found;
  auto mark = stream_mark::of(found.copier->context(), options.cuda_stream);
  if (!mark) return mark.why();
  found.after = *std::move(mark);
  return found;
}

}  // namespace

remote_region_core::remote_region_core(endpoint_core& endpoint, const remote_descriptor& descriptor)
    : peer_region(endpoint, descriptor),
      extent_(descriptor.size, content_of(descriptor)),
      window_(is_copied_by_driver(descriptor.kind) ? device_write_window : 0) {
  endpoint_.add(*this);
}

result<std::shared_ptr<remote_region_core>> remote_region_core::make(
    std::shared_ptr<endpoint_core> endpoint, const remote_descriptor& descriptor,
    const remote_region_options& options) {
  std::unique_lock guard(endpoint->worker().lock());
  std::shared_ptr<remote_region_core> made(new remote_region_core(*endpoint, descriptor));
  if (const std::error_code lost = endpoint->status()) {
    return failure{lost, "opening " + made->description(), endpoint->ucx_status_of(lost)};
  }
  auto chosen = made->choose_path(options);
  if (const std::shared_ptr<plane_transfer> first = made->awaited(); chosen && first) {
    guard.unlock();
    first->wait_over(longest_opening);
    guard.lock();
    chosen = made->check_path();
  }
  if (!chosen) {
    failure why = std::move(chosen).why();
    if (!why.text.empty()) why.text.insert(0, ": ");
    why.text.insert(0, "opening " + made->description());
    return why;
  }
  remote_region_core* core = made.get();
  auto held = std::make_shared<lease>(lease{std::move(endpoint), std::move(made)});
  return std::shared_ptr<remote_region_core>(std::move(held), core);
}

result<void> remote_region_core::choose_path(const remote_region_options& options) {
  const bool trusted = options.trusted_peer && descriptor_.foreign;
  auto chosen =
      detail::choose_path(*this, options.transfer_method, trusted,
                          endpoint_.files().take(descriptor_.region, descriptor_.granted));
  if (!chosen) return std::move(chosen).why();
  chosen_ = *std::move(chosen);
  if (chosen_.path) path_ = chosen_.path.get();
  in_place_ = path_->address() != nullptr || path_->method() == transfer_method::cma;
  return {};
}

/// Returns what the opening of a way that was asked for by name waits for, without the lock.
std::shared_ptr<plane_transfer> remote_region_core::awaited() const noexcept {
  return chosen_.asked_for && chosen_.path ? chosen_.path->first_transfer() : nullptr;
}

result<void> remote_region_core::check_path() const {
  if (const std::error_code lost = endpoint_.status()) {
    return failure{lost, {}, endpoint_.ucx_status_of(lost)};
  }
  if (path_->method() != transfer_method::message) return {};
  return failure{errc::not_supported, path_->complaint()};
}

remote_region_core::~remote_region_core() {
  const std::lock_guard guard(endpoint_.worker().lock());
  if (when_released_) when_released_();
  drop_key();
  endpoint_.remove(*this);
}

std::error_code remote_region_core::status() const noexcept {
  if (closed_) return errc::closed;
  const std::error_code lost = endpoint_.status();
  return !lost && (revoked_ || (chosen_.path && chosen_.path->is_withdrawn()))
             ? make_error_code(errc::revoked)
             : lost;
}

std::error_code remote_region_core::check(std::uint64_t offset, std::uint64_t length,
                                          access wanted) const noexcept {
  if (const std::error_code unusable = status()) return unusable;
  if (!includes(descriptor_.granted, wanted)) return errc::permission_denied;
  const std::uint64_t size = extent_.size();
  const std::uint64_t end = includes(wanted, access::write) ? extent_.limit() : size;
  if (offset <= end && length <= end - offset) return {};
  return end > size ? errc::no_space : errc::out_of_range;
}

result<std::byte*> remote_region_core::view(std::uint64_t offset, std::uint64_t length,
                                            access wanted) const {
  if (const std::error_code ec = check(offset, length, wanted)) return failure{ec};
  if (length > descriptor_.size || offset > descriptor_.size - length) {
    return failure{errc::out_of_range};
  }
  if (path_->method() == transfer_method::mapped) return path_->address() + offset;
  return failure{errc::not_supported, why_not(transfer_method::mapped)};
}

std::string remote_region_core::why_not(ucx::transfer_method wanted) const {
  if (wanted == transfer_method::automatic || wanted == path_->method()) return {};
  const bool by_driver = is_copied_by_driver(descriptor_.kind);
  std::string why;
  switch (wanted) {
    case transfer_method::mapped:
      why = chosen_.not_mapped;
      break;
    case transfer_method::cma:
      why = by_driver ? "it is memory of a CUDA device" : chosen_.not_read;
      break;
    case transfer_method::cuda_ipc:
      why = by_driver ? chosen_.not_read : "it is no memory of a CUDA device";
      // The driver may have refused what was chosen.
      if (by_driver && why.empty() && chosen_.path && !chosen_.path->is_by_adapters()) {
        why = chosen_.path->complaint();
      }
      break;
    case transfer_method::rma:
      why = chosen_.not_rma;
      // UCX may have refused what was chosen.
      if (why.empty() && chosen_.path && chosen_.path->is_by_adapters()) {
        why = chosen_.path->complaint();
      }
      break;
    case transfer_method::message:
      if (!has_answers()) why = why_no_answers().text;
      break;
    case transfer_method::automatic:
      break;
  }
  if (!why.empty()) return why;
  if (chosen_.asked_for) return "it was asked to go another way";
  return path_->method() == transfer_method::message ? "it was not tried"
                                                     : "a better way is in use";
}

bool remote_region_core::shares_messages(access wanted) const noexcept {
  if (chosen_.path && chosen_.path->takes(wanted)) return false;
  // A file has no address.
  return descriptor_.address != 0 && descriptor_.kind == memory_kind::host && has_answers();
}

/// Where no message tells that the owner is gone, and the caller may drive nothing.
void remote_region_core::look_at_owner() noexcept {
  if (in_place_) endpoint_.worker().look_now_and_then();
}

operation* remote_region_core::start_read_kept(std::uint64_t offset, std::span<std::byte> into,
                                               const std::shared_ptr<const void>& keeper,
                                               const io_options& options, std::error_code& ec) {
  look_at_owner();
  if ((ec = check(offset, into.size(), access::read)) || into.empty()) return nullptr;
  const bool device = is_on_device(into, ec);
  if (ec) return nullptr;
  if (device) return read_into_device(offset, into, options, ec);
  if (chosen_.path && !options.verify) {
    transfer_path& path = *chosen_.path;
    const auto taken = keeper ? path.read_kept(offset, into, keeper, options, ec)
                              : path.read(offset, into, options, ec);
    if (taken) return *taken;
  }
  return by_message_.read(offset, into, options, nullptr, ec);
}

operation* remote_region_core::start_write(const std::shared_ptr<write_tracker>& tracker,
                                           std::uint64_t offset, std::span<const std::byte> from,
                                           const io_options& options, std::error_code& ec) {
  look_at_owner();
  if ((ec = check(offset, from.size(), access::write)) || from.empty()) return nullptr;
  const bool device = is_on_device(from, ec);
  if (ec) return nullptr;
  if (device) return write_from_device(tracker, offset, from, options, ec);
  if (chosen_.path) {
    if (const auto taken = chosen_.path->write(tracker, offset, from, options, ec)) return *taken;
  }
  return by_message_.write(tracker, offset, from, options, nullptr, ec);
}

operation* remote_region_core::read_into_device(std::uint64_t offset, std::span<std::byte> into,
                                                const io_options& options, std::error_code& ec) {
  if (options.verify) {  // the processor can not look at what came
    ec = errc::not_supported;
    return nullptr;
  }
  const result<device_bytes> bytes = on_device(endpoint_.worker(), into, options);
  if (!bytes) {
    ec = bytes.why().code;
    return nullptr;
  }
  if (const auto taken = path_->move_device(*bytes, offset, access::read, options, ec)) {
    return *taken;
  }
  return by_message_.read_into(*bytes, offset, options, path_->mover(*bytes, access::read), ec);
}

operation* remote_region_core::write_from_device(const std::shared_ptr<write_tracker>& tracker,
                                                 std::uint64_t offset,
                                                 std::span<const std::byte> from,
                                                 const io_options& options, std::error_code& ec) {
  // Only read: this is the source of a write.
  const std::span<std::byte> where(const_cast<std::byte*>(from.data()), from.size());
  const result<device_bytes> bytes = on_device(endpoint_.worker(), where, options);
  if (!bytes) {
    ec = bytes.why().code;
    return nullptr;
  }
  if (const auto taken = path_->move_device(*bytes, offset, access::write, options, ec)) {
    return *taken;
  }
  return by_message_.write_from(tracker, *bytes, offset, options,
                                path_->mover(*bytes, access::write), ec);
}

operation* remote_region_core::start_flush(const std::shared_ptr<write_tracker>& tracker,
                                           const std::shared_ptr<posted_operations>& posted,
                                           const io_options& options, std::error_code& ec) {
  if (endpoint_.is_inherited()) {
    ec = errc::forked_child;
    return nullptr;
  }
  if (closed_ && posted->idle()) {
    ec = tracker->settled() ? tracker->take_failure() : std::error_code();
    if (!ec) ec = errc::closed;
    return nullptr;
  }
  const bool by_ucx = tracker->has_unconfirmable();
  if (!by_ucx && tracker->settled() && posted->idle()) {
    ec = tracker->take_failure();
    if (tracker->take_in_place() && !ec) {  // the writer's processor wrote: only if the owner lives
      if (!endpoint_.worker().in_handler()) endpoint_.worker().look();
      ec = endpoint_.failure();
    }
    return nullptr;
  }
  worker_core& worker = endpoint_.worker();
  std::unique_ptr<flush_operation> started(worker.pool_of<flush_operation>().take());
  started->begin(worker, endpoint_.shared_from_this(), tracker, posted, by_ucx,
                 worker.deadline_after(options.timeout));
  return started.release();
}

operation* remote_region_core::start_atomic(std::uint64_t offset, const atomic_access& wanted,
                                            std::span<std::byte> previous,
                                            const io_options& options, std::error_code& ec) {
  if (!is_operation(wanted.operation) || (!previous.empty() && previous.size() != wanted.width)) {
    ec = errc::invalid_argument;
    return nullptr;
  }
  look_at_owner();
  if ((ec = check(offset, wanted.width, access_for(wanted, !previous.empty())))) return nullptr;
  if (!is_aligned(descriptor_.address + offset, wanted.width)) {
    ec = errc::invalid_argument;
    return nullptr;
  }
  if (descriptor_.address == 0 || descriptor_.kind != memory_kind::host || descriptor_.foreign) {
    ec = errc::not_supported;
    return nullptr;
  }
  std::byte* const here = path_->address();
  if (here == nullptr || endpoint_.operations().fenced()) {
    return by_message_.perform(offset, wanted, previous, options, ec);
  }
  if (!is_aligned(reinterpret_cast<std::uintptr_t>(here) + offset, wanted.width)) {
    ec = errc::invalid_argument;  // the descriptor says something else than is true
    return nullptr;
  }
  // One machine's processors agree among themselves: this is what the owner would do.
  store_number(perform(wanted, here + offset), previous);
  path_->log_done("atomic access to ", offset, wanted.width);
  return nullptr;
}

operation* remote_region_core::start_notify(const std::shared_ptr<write_tracker>& tracker,
                                            const std::shared_ptr<posted_operations>& posted,
                                            std::uint64_t value, const io_options& options,
                                            std::error_code& ec) {
  if ((ec = check(0, 0, access::write))) return nullptr;
  if (!has_answers()) {
    ec = why_no_answers().code;
    return nullptr;
  }
  worker_core& worker = endpoint_.worker();
  std::unique_ptr<notify_operation> started(worker.pool_of<notify_operation>().take());
  started->begin(shared_from_this(), tracker, posted, value,
                 worker.deadline_after(options.timeout));
  return started.release();
}

bool remote_region_core::is_inherited() const noexcept { return endpoint_.is_inherited(); }

void remote_region_core::close() noexcept {
  if (endpoint_.is_inherited()) return;
  const std::lock_guard guard(endpoint_.worker().lock());
  if (std::exchange(closed_, true)) return;
  path_->close();
  endpoint_.operations().cancel_of(*this);
}

}  // namespace ucx::detail
