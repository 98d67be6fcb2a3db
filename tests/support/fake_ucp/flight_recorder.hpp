// Counts, at the simulated network, the bytes of regions that are in flight.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "support/fake_ucp/fake_network.hpp"
#include "wire/frame.hpp"

namespace ucx::test {

/// Bytes that were asked for and did not come, or were sent and are not confirmed, by the messages
/// and one-sided operations that the network saw. It does not ask the library.
class flight_recorder {
 public:
  explicit flight_recorder(fake_network& network) : network_(network) {
    network_.watch([this](const sighting& seen) { note(seen); });
  }
  ~flight_recorder() { network_.watch({}); }
  flight_recorder(const flight_recorder&) = delete;
  flight_recorder& operator=(const flight_recorder&) = delete;

  std::size_t in_flight() const noexcept { return in_flight_; }
  /// Returns the most that was in flight at any moment since the last call.
  std::size_t take_most() noexcept { return std::exchange(most_, in_flight_); }

 private:
  void note(const sighting& seen) {
    if (seen.kind != call::am_send) return seen.begins ? add(seen.size) : remove(seen.size);
    const auto said = detail::decode_frame(seen.header);
    if (!said) return;
    const auto length = static_cast<std::size_t>(said->length);
    using detail::opcode;
    if (seen.begins && said->code == opcode::read) add(length);
    if (seen.begins && said->code == opcode::write) add(seen.size);
    if (!seen.begins && said->code == opcode::data) remove(seen.size);
    if (!seen.begins && said->code == opcode::written) remove(length);
  }
  void add(std::size_t bytes) { most_ = std::max(most_, in_flight_ += bytes); }
  void remove(std::size_t bytes) { in_flight_ -= std::min(in_flight_, bytes); }

  fake_network& network_;
  std::size_t in_flight_ = 0;
  std::size_t most_ = 0;
};

}  // namespace ucx::test
