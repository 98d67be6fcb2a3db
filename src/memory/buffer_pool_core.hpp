// The buffers of a `buffer_pool`.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "base/intrusive_list.hpp"
#include "memory/buffer_home.hpp"
#include "memory/buffer_waiter.hpp"
#include "ucx/buffer.hpp"

namespace ucx::detail {

/// Lives as long as its pool, or a buffer of the pool that is out. In a child of fork() an
/// inherited one gives nothing, and takes nothing back: its lock is not waited for. Threads:
/// sharing one object is safe.
class buffer_pool_core final : public buffer_home,
                               public std::enable_shared_from_this<buffer_pool_core> {
 public:
  explicit buffer_pool_core(const buffer_pool_options& options);

  /// Returns an empty buffer when all are out.
  buffer take();
  std::size_t available() const noexcept;
  const buffer_pool_options& options() const noexcept { return options_; }
  void when_available(move_only_handler<> handler);

  // Those who wait stand in a line, and come before everybody else: while there is one, no buffer
  // is idle.
  /// Returns the buffer that was laid aside for `waiter`, or an idle one. An empty one where there
  /// is neither: then it stands in the line, until it is told.
  buffer take_for(buffer_waiter& waiter);
  /// It wants none (any more): what was laid aside for it is the next one's. As take_back().
  move_only_handler<> leave(buffer_waiter& waiter) noexcept;

  move_only_handler<> take_back(std::span<std::byte> bytes) noexcept override;
  bool let_go() noexcept override { return false; }

 private:
  buffer make_of(std::byte* memory) noexcept { return make({memory, options_.size}, *this); }

  const buffer_pool_options options_;
  std::unique_ptr<std::byte[]> memory_;
  mutable std::mutex mutex_;
  std::vector<std::byte*> idle_;
  intrusive_list<buffer_waiter, buffer_waiter_tag> line_;
  std::shared_ptr<buffer_pool_core> self_;  // while buffers are out
  move_only_handler<> waiting_;
};

}  // namespace ucx::detail
