// A time at which a worker over sockets does something.
#pragma once

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/owned_descriptor.hpp"
#include "carrier/carrier_source.hpp"

namespace ucx::detail {

/// Its owner has the worker watch the descriptor, and bury it.
class carrier_timer final : public carrier_source {
 public:
  explicit carrier_timer(std::function<void()> then)
      : descriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
        then_(std::move(then)) {}

  void happened(std::uint32_t) noexcept override {
    std::uint64_t times = 0;
    [[maybe_unused]] const ::ssize_t read = ::read(descriptor.get(), &times, sizeof times);
    then_();
  }
  void set(std::chrono::nanoseconds from_now) noexcept {
    const auto left = std::max<std::chrono::nanoseconds>(from_now, std::chrono::nanoseconds(1));
    ::itimerspec at = {};
    at.it_value.tv_sec = left.count() / 1'000'000'000;
    at.it_value.tv_nsec = left.count() % 1'000'000'000;
    ::timerfd_settime(descriptor.get(), 0, &at, nullptr);
  }

  owned_descriptor descriptor;

 private:
  const std::function<void()> then_;
};

}  // namespace ucx::detail
