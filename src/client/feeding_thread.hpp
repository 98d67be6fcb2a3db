// The thread behind a read_fd_feed.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/owned_descriptor.hpp"
#include "base/result.hpp"
#include "client/opened_source.hpp"
#include "ucx/experimental/read_fd_feed.hpp"
#include "ucx/file_descriptor.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

class feeding_thread {
 public:
  /// Fails where there are no sockets or no thread, and where the window is too short.
  static result<std::unique_ptr<feeding_thread>> make(
      opened_source source, const experimental::read_fd_feed_options& options);
  feeding_thread(const feeding_thread&) = delete;
  feeding_thread& operator=(const feeding_thread&) = delete;
  ~feeding_thread();

  /// A child of fork() has neither the thread nor the connection.
  bool is_of_this_process() const noexcept;
  /// Has the descriptors closed of a child of fork(), so that its parent's are the last.
  void leave_to_parent() noexcept;
  int reader() noexcept;
  file_descriptor take_reader() noexcept;
  bool wait_for(std::chrono::nanoseconds limit);
  std::error_code error();
  std::string error_text();
  std::uint64_t fed() const noexcept { return fed_.load(std::memory_order_relaxed); }
  void stop() noexcept;

 private:
  struct flight {
    request reading;
    std::span<std::byte> bytes;
    std::vector<std::byte>* memory;
  };

  feeding_thread(opened_source source, const experimental::read_fd_feed_options& options);
  bool make_sockets() noexcept;
  void start();
  void run() noexcept;
  void feed_all();
  void start_reads();
  bool arrived(flight& first);
  std::error_code hand_over(std::span<const std::byte> bytes);
  void end(std::error_code why, std::string text) noexcept;

  opened_source source_;
  const io_options each_;  // transfer
  file_descriptor reader_;
  owned_descriptor writer_;
  owned_descriptor stopping_;  // readable when it is to stop

  const std::size_t piece_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<std::vector<std::byte>*> idle_;
  std::deque<flight> flights_;
  std::uint64_t next_ = 0;  // to be read

  std::atomic<bool> stops_{false};
  std::atomic<std::uint64_t> fed_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::error_code error_;
  std::string error_text_;
  const ::pid_t owner_;
  std::thread thread_;
};

}  // namespace ucx::detail
