// Whether users' code runs under a worker's lock.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "ucx/worker.hpp"

namespace ucx::test {

/// Asked inside a handler: whether another thread gets at what the lock of a worker protects. The
/// worker has to be `thread_mode::multi`, and to outlive the probe.
class lock_probe {
 public:
  explicit lock_probe(const worker& asked) noexcept : asked_(asked) {}
  lock_probe(const lock_probe&) = delete;
  lock_probe& operator=(const lock_probe&) = delete;
  ~lock_probe() {
    for (std::thread& each : threads_) each.join();
  }

  bool is_free() {
    const auto got_in = std::make_shared<std::promise<void>>();
    std::future<void> seen = got_in->get_future();
    threads_.emplace_back([this, got_in] {
      static_cast<void>(asked_.connections());
      got_in->set_value();
    });
    return seen.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  }

 private:
  const worker& asked_;
  std::vector<std::thread> threads_;
};

}  // namespace ucx::test
