// A file that one thread lets go of while others take hold of it.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace ucx::detail {

/// A shared_ptr that may be copied from any thread while another one resets it.
template <class File>
class held_file {
 public:
  explicit held_file(std::shared_ptr<File> file) noexcept : file_(std::move(file)) {}
  held_file(const held_file&) = delete;
  held_file& operator=(const held_file&) = delete;

  std::shared_ptr<File> get() const noexcept {
    const std::lock_guard guard(mutex_);
    return file_;
  }
  void reset() noexcept {
    std::shared_ptr<File> gone;  // outlives the lock: closing a file may take long
    const std::lock_guard guard(mutex_);
    gone.swap(file_);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<File> file_;
};

}  // namespace ucx::detail
