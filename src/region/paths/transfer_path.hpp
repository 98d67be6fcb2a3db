// One way in which the bytes of a peer's region move. Each way is a class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>

#include "cuda/device_copier.hpp"
#include "region/paths/direct_move.hpp"
#include "region/paths/peer_region.hpp"
#include "ucx/access.hpp"
#include "ucx/request.hpp"

struct ucp_rkey;

namespace ucx::detail {

class operation;
class plane_transfer;
class write_tracker;

/// Bytes of the caller's in memory of a device, and who copies them, behind what.
struct device_bytes {
  std::span<std::byte> where;
  std::shared_ptr<device_copier> copier;
  std::shared_ptr<const stream_mark> after;
};

/// A part of a region's core, chosen when the core is made (`path_choice`). To add a way to move
/// bytes, derive from it, and add it to the choice. A path takes what it can move, and declines the
/// rest, which then goes by message: that way leads everywhere. Under the worker's lock, but for
/// `method()` and `bytes_in_huge_pages()`.
class transfer_path {
 public:
  /// The outcome of an access. Empty: the path declined it. Else the operation that began, or
  /// nullptr where it ended within the call, and `ec` says how.
  using outcome = std::optional<operation*>;

  virtual ~transfer_path() = default;
  transfer_path(const transfer_path&) = delete;
  transfer_path& operator=(const transfer_path&) = delete;

  /// Returns what users see. May change, of memory of a device.
  virtual ucx::transfer_method method() const noexcept = 0;

  // Accesses that were checked, between the owner's memory and the caller's, which is the host's.
  virtual outcome read(std::uint64_t offset, std::span<std::byte> into, const io_options& options,
                       std::error_code& ec) = 0;
  /// As `read`, into memory that `keeper` keeps: the transport may write there behind the end of a
  /// read that failed.
  virtual outcome read_kept(std::uint64_t offset, std::span<std::byte> into,
                            const std::shared_ptr<const void>& keeper, const io_options& options,
                            std::error_code& ec) {
    static_cast<void>(keeper);
    return read(offset, into, options, ec);
  }
  virtual outcome write(const std::shared_ptr<write_tracker>& tracker, std::uint64_t offset,
                        std::span<const std::byte> from, const io_options& options,
                        std::error_code& ec) = 0;
  /// Returns whether a read by a transport that is given up ends at once, and harms no other.
  virtual bool leaves_reads_at_once() const noexcept { return false; }
  /// Returns whether it would take such an access now.
  virtual bool takes(access wanted) const noexcept = 0;

  // Accesses whose caller's bytes are a device's.
  /// Moves them, as `read` and `write` do.
  virtual outcome move_device(const device_bytes& bytes, std::uint64_t offset, access wanted,
                              const io_options& options, std::error_code& ec);
  /// Returns a mover that uses the driver, for an operation that goes by message where the mover
  /// fails. Null where only messages move these bytes.
  virtual std::unique_ptr<direct_move> mover(const device_bytes& bytes, access wanted);
  /// Returns whether the owner lends its memory to movers still.
  virtual bool is_lent() noexcept { return false; }
  /// A mover has moved so many bytes, or could not. Returns whether that is how the access ends;
  /// else it goes by message: the owner says what has become of the memory, or moves it.
  virtual bool was_moved(std::uint64_t bytes, std::error_code outcome);

  /// Returns where the owner's memory is in this process; nullptr where it is not.
  virtual std::byte* address() const noexcept { return nullptr; }
  /// Returns UCX's key, where it has one.
  virtual ucp_rkey* key() const noexcept { return nullptr; }
  /// Returns whether the owner has taken the memory back, as far as that shows without asking.
  virtual bool is_withdrawn() const noexcept { return false; }
  /// Returns whether it is the way by adapters between hosts, whatever has become of that.
  virtual bool is_by_adapters() const noexcept { return false; }
  /// Returns the transfer that tells whether it leads there, where it has begun with one.
  virtual std::shared_ptr<plane_transfer> first_transfer() const noexcept { return nullptr; }
  /// Returns why it moves less than it might, for people; nothing where there is nothing to say.
  virtual std::string complaint() const { return {}; }
  /// Returns how much of the owner's memory is in huge pages, where that can be seen from here.
  virtual std::optional<std::uint64_t> bytes_in_huge_pages() const { return std::nullopt; }

  /// The region is closed, or was withdrawn: nothing begins any more.
  virtual void close() noexcept {}
  /// UCX's endpoint is about to go: keys go before it.
  virtual void drop_key() noexcept {}

  /// Tells the log of what was over within its call, where that wants to know.
  void log_done(const char* what, std::uint64_t offset, std::size_t length) const {
    if (logged_) write_done(what, offset, length);
  }

 protected:
  explicit transfer_path(peer_region& region) noexcept;
  /// Copies between a device's memory and `owners`, where that is here, within the call. `keeps`
  /// stays until the driver has let go of it.
  outcome copy_device(const device_bytes& bytes, std::byte* owners,
                      std::shared_ptr<const void> keeps, std::uint64_t offset, access wanted,
                      const io_options& options, std::error_code& ec) const;

  peer_region& region_;  // which it is a part of

 private:
  void write_done(const char* what, std::uint64_t offset, std::size_t length) const;

  const bool logged_;  // each access
};

}  // namespace ucx::detail
