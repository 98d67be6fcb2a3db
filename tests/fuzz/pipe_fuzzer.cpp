#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "pipes/pipe_frame.hpp"
#include "pipes/pipe_introduction.hpp"

namespace {

/// What was read is read again where it is written.
template <class Said, class Decode>
void read_twice(const Said& read, Decode decode) {
  const auto bytes = encode(*read);
  if (!decode(bytes)) std::abort();
}

/// Of two addresses there is one at most, and none of a version that does not have it.
template <class Said>
void check_addresses(const Said& read) {
  using namespace ucx::detail;
  if (read.worker.empty()) return;
  if (!read.address.empty() || read.version == oldest_meeting_version ||
      read.worker.encode().size() > longest_pipe_worker) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ucx::detail;
  const std::span<const std::byte> wire(reinterpret_cast<const std::byte*>(data), size);
  const auto hello = decode_pipe_hello(wire);
  if (hello && hello->version == pipe_version) {
    if (hello->window < hello->piece || hello->window > most_pipe_window) std::abort();
    read_twice(hello, decode_pipe_hello);
  }
  if (const auto end = decode_pipe_end(wire)) read_twice(end, decode_pipe_end);
  if (const auto place = decode_pipe_place(wire)) read_twice(place, decode_pipe_place);
  if (const auto ring = decode_pipe_ring(wire)) {
    if (ring->places == 0 || ring->places > pipe_ring::most_places) std::abort();
    read_twice(ring, decode_pipe_ring);
  }
  if (decode_pipe_count(wire) && size != 8) std::abort();
  if (const auto asked = decode_pipe_question(wire)) {
    check_addresses(*asked);
    read_twice(asked, decode_pipe_question);
  }
  if (const auto found = decode_pipe_answer(wire)) {
    check_addresses(*found);
    read_twice(found, decode_pipe_answer);
  }
  return 0;
}
