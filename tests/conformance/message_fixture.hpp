// What the conformance tests of messages share: two sides, and the sizes that they send.
#pragma once

#include <cstddef>
#include <system_error>

#include <gtest/gtest.h>

#include "support/transports/message_pair.hpp"

namespace ucx::test {

inline constexpr std::size_t conformance_sizes[] = {
    0, 1, 1024, 2048, std::size_t{1} << 20U, std::size_t{16} << 20U};

/// Over every transport, in every progress mode on either side: see every_message_pair().
class ConformanceC : public testing::TestWithParam<message_pair_options> {
 protected:
  explicit ConformanceC(std::size_t window = 0) : ConformanceC(with_window(window)) {}
  explicit ConformanceC(const worker_options& defaults) : pair_(with_defaults(defaults)) {}

  static worker_options with_window(std::size_t window) {
    worker_options options;
    options.message_window = window;
    return options;
  }
  static message_pair_options with_defaults(const worker_options& defaults) {
    message_pair_options options = GetParam();
    options.defaults = defaults;
    return options;
  }
  /// Returns how it ended, while both sides make progress.
  std::error_code outcome(request& waited) {
    EXPECT_TRUE(pair_.until([&] { return waited.done(); }));
    return waited.error();
  }
  endpoint& sender() { return *pair_.sender; }
  worker& receiver() { return pair_.receiver(); }

  message_pair pair_;
};

}  // namespace ucx::test
