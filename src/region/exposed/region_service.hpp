// The owner's side: answers peers' reads and writes of the regions of the worker's context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>

#include "base/intrusive_list.hpp"
#include "base/pool.hpp"
#include "region/exposed/file_service.hpp"
#include "region/exposed/region_extras.hpp"
#include "ucx/access.hpp"
#include "wire/frame.hpp"

namespace ucx::detail {

class context_core;
class counted_region;
class driven_connection;
class endpoint_core;
class exposed_region;
class read_answer;
class worker_core;

struct answer_tag {};

/// Trusts nothing that a peer says: region, incarnation, generation, bounds and rights are checked
/// against the owner's own table at every access. So are the connection's grants. The owner is the
/// worker's context, or beside it another one of this process.
class region_service {
 public:
  /// A peer may have so many reads unanswered; further ones are refused with `busy`.
  static constexpr unsigned most_reads = 1024;

  explicit region_service(worker_core& worker);
  ~region_service();
  region_service(const region_service&) = delete;
  region_service& operator=(const region_service&) = delete;

  /// Serves the regions of `owner`, too, beside those of the worker's context, and keeps `owner`.
  /// Closing such a region waits for this worker, too. UCX's keys of them are of no use to peers of
  /// this worker. REQUIRES: the worker has no peers yet. Under its lock.
  void serve_regions_of(std::shared_ptr<context_core> owner);

  void read(endpoint_core& from, const frame& asked);
  void write(endpoint_core& from, const frame& asked, std::span<const std::byte> payload);
  /// Returns whether the peer may go on reading: its grant may have ended, or be one to write only.
  static bool may_read(const endpoint_core& to, const exposed_region& region) noexcept;
  /// Returns whether the peer has so few answers in flight that it may get one of so many bytes.
  static bool may_answer(const endpoint_core& to, std::uint64_t bytes, unsigned most) noexcept;
  static void answer_write(endpoint_core& from, const frame& asked, std::error_code ec);
  region_extras& extras() noexcept { return extras_; }

  /// Returns whether an answer reads `region` now.
  bool answering(const counted_region& region) const noexcept;
  /// Ends what can be ended of the answers from `region` without dropping connections: those from
  /// files, whose bytes are copies, and those over sockets. The peer is refused the rest.
  void withdraw(const counted_region& region);
  /// Drops the connections whose answers read `region`.
  void cut_off(const counted_region& region);
  /// Ends what is under way to a connection that is lost, and not in UCX's hands.
  void connection_failed(const driven_connection& connection);
  /// Ends what runs elsewhere; bounded.
  void stop() noexcept {
    files_.stop();
    devices_.stop();
  }

  file_service& files() noexcept { return files_; }
  /// Memory of devices is read like files, but with separate buffers: a device that hangs keeps no
  /// buffer from reads of files.
  file_service& devices() noexcept { return devices_; }

 private:
  friend class file_service;
  friend class read_answer;
  friend class region_extras;
  context_core* owner_with(std::uint64_t incarnation) const noexcept;
  exposed_region* admit(const endpoint_core& from, const frame& asked, access wanted,
                        std::error_code& ec) noexcept;
  void refuse(endpoint_core& to, const frame& asked, std::error_code why);
  void ended(read_answer& answer) noexcept;

  worker_core& worker_;
  std::shared_ptr<context_core> other_owner_;  // null: the worker's context alone
  intrusive_list<read_answer, answer_tag> answers_;
  std::unique_ptr<pool<read_answer>> idle_;
  region_extras extras_{*this};
  file_service files_;
  file_service devices_;
};

}  // namespace ucx::detail
