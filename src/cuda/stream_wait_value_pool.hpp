// Words of the host's memory that CUDA streams wait for, and for how long at most.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "cuda/cuda_driver.hpp"

namespace ucx::detail {

/// The words of one context: each is a gate, which is open or shut. Neither the object nor the
/// words ever go, because a stream may come to a gate long after it was opened. The words' memory
/// is the process's, and outlives the context. A thread opens gates that are shut for too long. It
/// runs while there are shut ones, so that every gate is opened in the end.
/// Threads: sharing one object is safe. No call of the driver's is made under the lock of opening.
class stream_wait_value_pool {
 public:
  /// How many may be shut at a time. Words for so many are registered once, and no more while
  /// streams are held, because the driver may wait for them then.
  static constexpr std::size_t most = 1024;

  /// Returns the one of the process for `context`. Throws std::bad_alloc.
  static stream_wait_value_pool& of(cuda::context context);
  stream_wait_value_pool(const stream_wait_value_pool&) = delete;
  stream_wait_value_pool& operator=(const stream_wait_value_pool&) = delete;

  /// The word that a stream waits for, and the value that the word has to reach.
  struct gate {
    std::uint32_t number = 0;
    std::uint32_t value = 0;
  };
  /// Shuts one that is open, until `until` at most; nothing where all are shut, or there is no
  /// thread to be had.
  std::optional<gate> shut(clock::time_point until) noexcept;
  /// Opens one, if it is shut, for the next use. In a child that was forked does nothing: the word
  /// is the parent's.
  void open(const gate& shut) noexcept;
  /// Returns whether it is still shut; then `open` alone opens it.
  bool claim(const gate& shut) noexcept;

  /// Finds out where the device sees a gate's word; returns what the driver said, and of which
  /// call.    REQUIRES: the context is current.
  cuda::result reach(const cuda_driver& driver, const gate& shut, cuda::address& seen,
                     const char*& call);

 private:
  enum class state : std::uint8_t { open, shut, claimed, overdue };
  struct entry {
    state now = state::open;
    clock::time_point until;
  };
  using word = std::atomic<std::uint32_t>;
  static_assert(sizeof(word) == 4 && word::is_always_lock_free);

  stream_wait_value_pool();
  ~stream_wait_value_pool() = default;
  void watch() noexcept;
  clock::time_point open_overdue(clock::time_point now) noexcept;

  const ::pid_t process_ = ::getpid();
  word* words_;

  std::mutex registering_;
  bool registered_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<entry, most> entries_;
  std::vector<std::uint32_t> free_;                    // has room for all
  clock::time_point next_ = clock::time_point::max();  // until when the thread sleeps
  bool watched_ = false;
};

}  // namespace ucx::detail
