// Memory or a file that an owner lets peers reach, under an id in its context's table.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>

#include "base/clock.hpp"
#include "base/handle_place.hpp"
#include "ucx/access.hpp"
#include "ucx/context.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/remote_descriptor.hpp"
#include "worker/counted_region.hpp"
#include "worker/region_table.hpp"

struct ucp_mem;

namespace ucx::detail {

class context_core;
class endpoint_core;
class file_source;
class notification_queue;
struct frame;

/// Takes writes that can not be done at once, and answers them later.
class write_sink {
 public:
  virtual ~write_sink() = default;
  /// Copies what it needs of `payload`. Under the worker's lock, maybe inside UCX.
  virtual void write(endpoint_core& from, const frame& asked,
                     std::span<const std::byte> payload) = 0;
};

/// Memory or a file that peers reach by its number in the context. The number is enough, by any
/// connection, unless the region requires grants.
class exposed_region : public counted_region {
 public:
  virtual ~exposed_region();
  exposed_region(const exposed_region&) = delete;
  exposed_region& operator=(const exposed_region&) = delete;

  /// Returns whether it is that of a process that this one was forked from.
  bool is_inherited() const noexcept { return made_.is_inherited(); }
  /// Increases with each region of the context: what replaces another one has a higher one.
  std::uint64_t generation() const noexcept { return generation_; }
  /// From here on only connections with a grant (`region_grants`) reach it. Once, by a server.
  void require_grants() noexcept { requires_grants_.store(true, std::memory_order_relaxed); }
  bool requires_grants() const noexcept { return requires_grants_.load(std::memory_order_relaxed); }
  access granted() const noexcept { return granted_; }
  virtual std::uint64_t size() const noexcept = 0;
  /// Returns where writes have to end: beyond size(), if it grows.
  virtual std::uint64_t writable_size() const noexcept { return size(); }
  /// Lets peers read up to `size`, where it is a file that was seen to be so long.
  virtual void reach(std::uint64_t size) noexcept { static_cast<void>(size); }
  virtual memory_kind kind() const noexcept = 0;
  virtual memory_place memory() const noexcept { return {kind()}; }
  /// Returns where it lies: the same, but that pinned memory is the host's to peers.
  virtual memory_place whereabouts() const noexcept { return memory(); }
  virtual remote_descriptor descriptor() const = 0;

  /// Returns the memory that the processor reaches; nothing for a file, or a device's memory.
  virtual std::span<std::byte> bytes() const noexcept = 0;
  /// Returns where the owner has the memory, even if only a device reaches it.
  virtual std::span<std::byte> where() const noexcept { return bytes(); }
  /// Returns the file, or the memory of a device, which is read like one. Null for memory that the
  /// processor reaches, and while the region is being closed.
  virtual std::shared_ptr<file_source> source() const noexcept = 0;

  /// Returns UCX's registration of the memory, where it has one.
  virtual ucp_mem* registration() const noexcept { return nullptr; }

  /// Returns the sink for writes; null where they go into memory.
  virtual std::shared_ptr<write_sink> sink() noexcept { return nullptr; }

  /// Takes a notification that has to wait until the owner sees what adapters wrote, and answers it
  /// then. Returns false where none has to wait. Under the worker's lock.
  virtual bool notify_later(endpoint_core& from, const frame& asked) {
    static_cast<void>(from);
    static_cast<void>(asked);
    return false;
  }

  /// Checks an access of a peer's against size and rights; offsets can not overflow.
  std::error_code check(std::uint64_t offset, std::uint64_t length, access wanted) const noexcept;

  /// Takes the region out of peers' reach. Returns when no access to it runs any more and its
  /// resources are released, also if another caller closes it too. Drops peers that have not let go
  /// by `until`. Safe from any thread.
  void close(clock::time_point until = clock::time_point::max()) noexcept;

  /// Where its `memory_region` is, if it has one.
  handle_place& place_of_handle() noexcept { return place_; }

  const std::shared_ptr<notification_queue>& notifications() const noexcept {
    return notifications_;
  }

 protected:
  exposed_region(std::shared_ptr<context_core> context, access granted);

  context_core& context() const noexcept { return *context_; }
  /// Begins a descriptor with what every region has.
  remote_descriptor describe() const;
  /// From here on peers find the region.
  void expose();
  /// Gives back what stands behind the region. Called once or more, by one thread at a time.
  virtual void release() noexcept = 0;

 private:
  exposed_region(const region_number& number, std::shared_ptr<context_core> context,
                 access granted);
  void withdraw(clock::time_point until) noexcept;

  const process_stamp made_;
  const std::uint64_t generation_;
  std::shared_ptr<context_core> context_;
  access granted_;
  std::atomic<bool> requires_grants_{false};
  std::shared_ptr<notification_queue> notifications_;
  std::atomic<bool> exposed_{false};
  handle_place place_;
  std::mutex releasing_;
};

/// An access that ends with this object, unless leave() hands it on.
class held_access {
 public:
  explicit held_access(exposed_region& accessed) noexcept : accessed_(&accessed) {}
  held_access(const held_access&) = delete;
  held_access& operator=(const held_access&) = delete;
  ~held_access() {
    if (accessed_ != nullptr) accessed_->end_access();
  }
  void leave() noexcept { accessed_ = nullptr; }

 private:
  exposed_region* accessed_;
};

}  // namespace ucx::detail
