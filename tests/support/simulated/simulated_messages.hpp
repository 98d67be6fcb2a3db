// Two simulated processes that exchange messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/bytes/pattern.hpp"
#include "support/bytes/untouched.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/message.hpp"

namespace ucx::test {

/// The sender is the pair's reader, the receiver its owner, which knows the sender by what it
/// hears.
struct simulated_messages {
  explicit simulated_messages(const simulated_pair_options& options = {})
      : pair(options), sender(pair.connect()) {
    sender.wait_connected();
  }

  worker& receiver() { return pair.owner; }
  fake_network& network() { return pair.network; }

  /// Lets everybody do what there is to do.
  void settle(std::chrono::nanoseconds time = std::chrono::milliseconds(1)) {
    network().advance(time);
  }
  /// Waits for a message of this tag and takes it.
  message take(const tag_match& wanted) {
    EXPECT_TRUE(network().run_until([&] { return receiver().probe(wanted).has_value(); }));
    std::optional<message> taken = receiver().take(wanted);
    return taken ? std::move(*taken) : message();
  }
  /// Returns the receiver's connection to the sender.
  endpoint back() {
    sender.send(0xbac, {}, {.until = send_until::reusable});
    return take(0xbac).peer();
  }
  std::error_code outcome(request& waited) {
    std::error_code ec;
    waited.wait(ec);
    return ec;
  }

  simulated_pair pair;
  endpoint sender;
};

inline std::vector<std::byte> blank(std::size_t size) {
  return std::vector<std::byte>(size, untouched);
}

/// Sizes around every limit that matters: nothing, one segment, the longest that goes whole, more.
inline const std::vector<std::size_t> message_sizes{
    0, 1, 1024, 2048, 65536, 262144, 262145, 300000, 1U << 20U, (1U << 20U) + 1U, 5U << 20U};

}  // namespace ucx::test
