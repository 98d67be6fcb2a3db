// Where the memory of a `buffer` goes when the buffer dies.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "ucx/buffer.hpp"
#include "ucx/completion_handler.hpp"
#include "ucx/context.hpp"

namespace ucx::detail {

class buffer_home {
 public:
  buffer_home(const buffer_home&) = delete;
  buffer_home& operator=(const buffer_home&) = delete;

  /// Takes the memory back, or frees it; called once a buffer. Returns the user's code that this
  /// calls for, which may not run under a lock.
  virtual move_only_handler<> take_back(std::span<std::byte> bytes) noexcept = 0;
  /// Lets the caller have the memory; returns whether that is possible.
  virtual bool let_go() noexcept = 0;

  /// Returns whether the memory, and the user's code, are those of a process that this one was
  /// forked from.
  virtual bool is_inherited() const noexcept { return made_.is_inherited(); }

  static buffer make(std::span<std::byte> bytes, buffer_home& home) noexcept {
    return buffer(bytes, home);
  }
  static buffer_home* of(const buffer& asked) noexcept { return asked.home_; }
  /// As the end of the buffer, but for what `take_back` returns: that is left to the caller.
  static move_only_handler<> give_back(buffer&& gone) noexcept {
    buffer_home* const home = std::exchange(gone.home_, nullptr);
    gone.size_ = 0;
    const std::span<std::byte> bytes = std::exchange(gone.bytes_, {});
    if (home == nullptr || home->is_inherited()) return {};
    return home->take_back(bytes);
  }

 protected:
  buffer_home() noexcept = default;
  ~buffer_home() = default;

 private:
  const process_stamp made_;
};

}  // namespace ucx::detail
