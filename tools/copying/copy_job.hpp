// Many files that are being copied.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "copying/file_copy.hpp"

namespace ucx::tool {

/// Some threads take one file after the other, and help each other with large ones. Memory: a
/// piece for each thread.
class copy_job {
 public:
  /// Is told of each file that was not copied, by any thread, one at a time.
  using report = std::function<void(const failure&)>;

  copy_job(const copy_context& context, report on_failure);

  /// Copies them, by `threads`; returns how many were not. Where nothing else could go well either
  /// (the connection is lost, the disk is full), the rest is not tried. Copies that have begun end
  /// then. Errors: that failure; that of a single file.
  std::size_t run(std::vector<copy_task> tasks, unsigned threads);

 private:
  using file = std::shared_ptr<file_copy>;

  void work();
  std::vector<copy_task> take_small();
  void copy_alone(const file& alone, std::span<std::byte> buffer);
  file next();
  file open(const copy_task& task);
  void finish(const file& whole);
  void failed(const failure& why);

  const std::stop_token asked_;  // by the caller
  std::stop_source end_;         // what everything that runs looks at
  const copy_context context_;
  report on_failure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<copy_task> tasks_;
  std::size_t batch_ = 1;           // small files that one thread takes at a time,
  std::size_t batch_of_names_ = 1;  // and where names are opened for them
  std::size_t next_ = 0;
  std::size_t opening_ = 0;
  std::list<file> large_;  // those that others may help with
  std::size_t failures_ = 0;
  std::optional<failure> ended_by_;
  std::stop_callback<std::function<void()>> forwarding_;
};

}  // namespace ucx::tool
