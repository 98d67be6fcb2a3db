// A peer's region, reachable over one connection by one way.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "base/result.hpp"
#include "connection/endpoint_core.hpp"
#include "region/device_loan.hpp"
#include "region/direct_move.hpp"
#include "region/region_loan.hpp"
#include "region/shared_mapping.hpp"
#include "region/write_room.hpp"
#include "ucp/ucp_api.hpp"
#include "ucx/access.hpp"
#include "ucx/atomic_access.hpp"
#include "ucx/content_id.hpp"
#include "ucx/io_options.hpp"
#include "ucx/remote_descriptor.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/way.hpp"

namespace ucx::detail {

class message_write;
class posted_operations;
class write_tracker;

/// Shared by the handles of one region and by what they started. Under the worker's lock, but for
/// what never changes.
class remote_region_core final : public key_holder,
                                 public std::enable_shared_from_this<remote_region_core> {
 public:
  /// Makes the core that a handle holds: it keeps the connection open. Operations hold the core by
  /// `shared_from_this()`, which does not, so that they end with the connection.
  static result<std::shared_ptr<remote_region_core>> make(std::shared_ptr<endpoint_core> endpoint,
                                                          const remote_descriptor& descriptor,
                                                          const remote_region_options& options);
  ~remote_region_core();
  remote_region_core(const remote_region_core&) = delete;
  remote_region_core& operator=(const remote_region_core&) = delete;

  endpoint_core& endpoint() const noexcept { return endpoint_; }
  const remote_descriptor& descriptor() const noexcept { return descriptor_; }
  ucp_rkey_h key() const noexcept { return key_; }
  /// May change, of memory of a device.
  ucx::way way() const noexcept { return way_; }
  /// Returns how many bytes there are to read: more than at first, once something was written
  /// behind them.
  std::uint64_t size() const noexcept { return size_; }
  /// Returns where writes have to end.
  std::uint64_t limit() const noexcept { return std::max<std::uint64_t>(size_, limit_); }
  /// Returns what was there when it was opened, or measured.
  const content_id& content() const noexcept { return content_; }
  /// Returns whether its server tells how long it is by now. Never changes once it is opened.
  bool measurable() const noexcept { return measurable_; }
  std::string description() const;
  /// See remote_region; takes the lock itself.
  std::optional<std::uint64_t> bytes_in_huge_pages() const;
  std::error_code status() const noexcept;

  /// Each starts an operation; nothing is returned if it ended within the call, and `ec` says how.
  operation* start_read(std::uint64_t offset, std::span<std::byte> into, const io_options& options,
                        std::error_code& ec);
  operation* start_write(const std::shared_ptr<write_tracker>& tracker, std::uint64_t offset,
                         std::span<const std::byte> from, const io_options& options,
                         std::error_code& ec);
  operation* start_flush(const std::shared_ptr<write_tracker>& tracker,
                         const std::shared_ptr<posted_operations>& posted,
                         const io_options& options, std::error_code& ec);
  operation* start_atomic(std::uint64_t offset, const atomic_access& wanted,
                          std::span<std::byte> previous, const io_options& options,
                          std::error_code& ec);
  operation* start_notify(const std::shared_ptr<write_tracker>& tracker,
                          const std::shared_ptr<posted_operations>& posted, std::uint64_t value,
                          const io_options& options, std::error_code& ec);

  /// Returns why an access can not even be tried; no error if it can.
  std::error_code check(std::uint64_t offset, std::uint64_t length, access wanted) const noexcept;
  /// Returns where those bytes are in this process. Errors: as check(), without a text;
  /// not_supported where they are not, and why.
  result<std::byte*> view(std::uint64_t offset, std::uint64_t length, access wanted) const;
  /// Returns why there is no view; nothing where there is one. Never changes.
  const std::string& why_not_mapped() const noexcept { return why_not_mapped_; }
  /// Returns why neither this process nor its driver reads it where it lies; nothing where they do,
  /// or will try, and of what is mapped.
  std::string why_not_read() const;
  /// Returns whether accesses go by message to an owner that answers several in one.
  bool shares_messages(access wanted) const noexcept;

  void close() noexcept;
  /// Writes may make it longer, with so many of their bytes unconfirmed at a time.
  void grow_to(std::uint64_t limit, std::uint64_t window) noexcept;
  /// It is a file: of that identity, where that is not 0.
  void is_file(std::uint64_t identity, std::uint64_t generation, bool measurable) noexcept;
  /// It was seen to have so many bytes; there are never fewer to read, but some may be gone.
  void measured(std::uint64_t size, std::uint64_t generation) noexcept;
  /// The owner has given it another size.
  void resized(std::uint64_t size) noexcept { size_ = size; }
  /// `told` is called with the region's end, under the lock.
  void when_released(std::function<void()> told) { when_released_ = std::move(told); }

  // Of the writes of a region that grows: their owner has no room for more than the window.
  /// Returns how much of it a piece of so many bytes takes.
  std::uint64_t room_for(std::uint64_t bytes) const noexcept { return write_room(bytes, window_); }
  /// Returns whether `write` may send what takes so much, which it has until it is `freed()`; if
  /// not, it is called when it may try again.
  bool may_send(message_write& write, std::uint64_t room);
  void freed(std::uint64_t room) noexcept;
  void stops_waiting(const message_write& write) noexcept;

  // Of bytes that the driver copies from or to the owner's memory.
  /// Returns whether the owner lends it still.
  bool is_lent() noexcept { return mapping_ ? !mapping_->withdrawn() : lent_ && lent_->is_lent(); }
  /// The driver has moved so many bytes, or could not. Returns whether that is how the access ends;
  /// else it goes by message: the owner says what has become of the memory, or moves it.
  bool was_moved(std::uint64_t bytes, std::error_code outcome);

  /// A write of it is missing: it can not be committed any more.
  void spoil(std::error_code why) noexcept { spoiled_ = why; }
  std::error_code spoiled() const noexcept { return spoiled_; }
  /// The owner said that it withdrew the region: nothing new is sent.
  void revoke() noexcept {
    revoked_ = true;
    lent_.reset();
  }
  /// Lets go of UCX's key, which goes before its endpoint.
  void drop_key() noexcept override;

 private:
  operation* read_by_message(std::uint64_t offset, std::span<std::byte> into,
                             const io_options& options, std::error_code& ec);
  operation* read_from_device(std::uint64_t offset, std::span<std::byte> into,
                              const io_options& options, std::error_code& ec);
  operation* read_into_device(std::uint64_t offset, std::span<std::byte> into,
                              const io_options& options, std::error_code& ec);
  operation* write_from_device(const std::shared_ptr<write_tracker>& tracker, std::uint64_t offset,
                               std::span<const std::byte> from, const io_options& options,
                               std::error_code& ec);
  remote_region_core(endpoint_core& endpoint, const remote_descriptor& descriptor);
  result<void> choose_way(ucx::way wanted);
  result<void> take_key();
  void log_no_rdma(const std::string& why_not) const;
  bool map();
  bool borrow();
  bool borrow_device(ucx::way wanted);
  void stays_staged();
  /// Returns whether the driver may copy from and to mapped memory when the call has returned.
  bool moves_later() const noexcept;
  /// Returns who moves bytes by `copier`, this side's or the owner's being a device's; nobody where
  /// they go by message.
  std::unique_ptr<direct_move> mover(const std::shared_ptr<device_copier>& copier, access wanted,
                                     std::shared_ptr<const stream_mark> after);
  bool by_rma(access wanted) const noexcept;
  /// Returns whether this processor moves the bytes, within the call.
  bool copied_here() const noexcept;
  /// Returns whether it reads them where the owner has them, likewise.
  bool read_here() const noexcept;
  /// Tells the log of what was over within its call, where that wants to know.
  void log_done(const char* what, std::uint64_t offset, std::size_t length) const {
    if (logged_) write_done(what, offset, length);
  }
  void write_done(const char* what, std::uint64_t offset, std::size_t length) const;

  endpoint_core& endpoint_;
  const remote_descriptor descriptor_;
  std::atomic<std::uint64_t> size_;  // is read without the lock
  content_id content_;
  bool measurable_ = false;
  std::uint64_t limit_ = 0;
  std::uint64_t window_ = 0;            // 0: as many as one likes
  std::uint64_t taken_ = 0;             // of the window
  std::deque<message_write*> waiting_;  // for room in the window
  std::function<void()> when_released_;
  std::atomic<ucx::way> way_ = ucx::way::message;  // is read without the lock
  ucp_rkey_h key_ = nullptr;
  std::shared_ptr<shared_mapping> mapping_;  // with copies of a driver's, maybe
  std::unique_ptr<borrowed_region> borrowed_;
  std::unique_ptr<borrowed_device> lent_;
  std::string why_not_mapped_;
  std::string why_not_read_;     // under the lock
  std::byte* mapped_ = nullptr;  // the owner's memory, where this process can reach it
  bool copied_ = false;          // there, without UCX
  const bool logged_;            // each operation
  bool writes_by_rma_ = true;
  bool closed_ = false;
  bool revoked_ = false;
  std::error_code spoiled_;
};

}  // namespace ucx::detail
