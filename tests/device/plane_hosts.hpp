// Two simulated hosts with adapters, and what holds the thread of a plane.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/adapter_memory.hpp"
#include "support/fake_cuda/cuda_program.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "worker/context_core.hpp"
#include "worker/core_access.hpp"
#include "worker/device_plane.hpp"

namespace ucx::test {

constexpr std::size_t plane_size = 100'000;

/// Lines of level `warning` and above.
class plane_lines {
 public:
  /// `on_line` is called with each line of level `info` and above.
  explicit plane_lines(std::function<void(std::string_view)> on_line = {})
      : on_line_(std::move(on_line)) {}

  log_options options() {
    const log_level least = on_line_ ? log_level::info : log_level::warning;
    return {.level = least, .sink = [this](log_level level, std::string_view line) {
              if (on_line_) on_line_(line);
              if (level == log_level::info) return;
              const std::lock_guard guard(mutex_);
              all_.append(line).append("\n");
            }};
  }
  std::string all() const {
    const std::lock_guard guard(mutex_);
    return all_;
  }

 private:
  const std::function<void(std::string_view)> on_line_;
  mutable std::mutex mutex_;
  std::string all_;
};

/// Hardware, UCX that knows devices and refuses what it would emulate, and threads.
inline simulated_pair_options by_adapters() {
  simulated_pair_options made;
  made.link.time = time_mode::real;
  made.link.version_minor = 21;
  made.link.version_release = 0;
  made.link.emulated_rma = false;
  made.link.resources = {"rc_mlx5/mlx5_0:1", "cuda_copy/cuda"};
  made.owner_worker.progress = progress_mode::sleeping_thread;
  made.reader_worker.progress = progress_mode::sleeping_thread;
  made.owner_context.device_rma = true;
  made.reader_context.device_rma = true;
  return made;
}

/// An owner's memory of a device, and a reader of it.
class two_hosts {
 public:
  explicit two_hosts(simulated_pair_options options = by_adapters(),
                     access granted = access::read_write,
                     std::function<void(std::string_view)> on_readers_line = {})
      : readers_lines(std::move(on_readers_line)), pair(with_logs(std::move(options), *this)) {
    install(pair.owner_process, devices);
    memory = cuda_program::allocate_pattern(plane_size, 1);
    exposed.emplace(pair.owner_context, memory, granted);
    connection.emplace(pair.connect());
    connection->wait_connected();
  }

  remote_region open(const remote_region_options& options = {}) {
    return remote_region(*connection, exposed->descriptor(), options);
  }
  /// Opens it, and waits until the way by adapters is known to be there.
  remote_region opened() {
    remote_region made = open();
    EXPECT_TRUE(soon([&] { return made.transfer_method() == transfer_method::rma; }))
        << made.why_not(transfer_method::rma);
    return made;
  }
  std::uint64_t puts() const { return pair.reader_process.count(call::put); }
  std::uint64_t gets() const { return pair.reader_process.count(call::get); }
  bool holds(std::uint64_t seed) const {
    return holds_pattern(cuda_program::content(memory), seed);
  }

  static simulated_pair_options with_logs(simulated_pair_options options, two_hosts& into) {
    options.owner_context.log = into.owners_lines.options();
    options.reader_context.log = into.readers_lines.options();
    return options;
  }

  const cuda_program program;
  const std::shared_ptr<adapter_memory> devices = std::make_shared<adapter_memory>();
  plane_lines owners_lines;
  plane_lines readers_lines;
  simulated_pair pair;
  std::span<std::byte> memory;
  std::optional<memory_region> exposed;
  std::optional<endpoint> connection;
};

inline std::error_code read_plane(remote_region& region, std::span<std::byte> into,
                                  const io_options& options = {}) {
  std::error_code ec;
  region.read_at(0, into, options, ec);
  return ec;
}

/// Has the plane's thread wait at its end.
class held_transfer final : public detail::plane_transfer {
 public:
  void go_on() { released_.set_value(); }
  bool is_held() {
    return held_.get_future().wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  }

 private:
  void ended() noexcept override {
    held_.set_value();
    released_.get_future().wait_for(std::chrono::seconds(60));
  }

  std::promise<void> held_;
  std::promise<void> released_;
};

/// Holds the thread of a context's plane, as a driver that does not return.
class held_plane {
 public:
  explicit held_plane(const context& of) {
    const auto plane = *detail::core_access::core(of)->plane();
    held_->key = plane->key(plane->peer(pattern(32)), pattern(32));
    held_->abandon();
    EXPECT_FALSE(plane->start(held_));
    EXPECT_TRUE(held_->is_held());
  }
  held_plane(const held_plane&) = delete;
  held_plane& operator=(const held_plane&) = delete;
  ~held_plane() { go_on(); }

  void go_on() {
    if (!std::exchange(goes_on_, true)) held_->go_on();
  }

 private:
  const std::shared_ptr<held_transfer> held_ = std::make_shared<held_transfer>();
  bool goes_on_ = false;
};

}  // namespace ucx::test
