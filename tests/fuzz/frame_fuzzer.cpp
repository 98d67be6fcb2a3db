#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "wire/frame.hpp"
#include "wire/protocol.hpp"

/// A frame of this version is written as it was read, but for fields that mean nothing.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using ucx::detail::frame;
  const std::span<const std::byte> wire(reinterpret_cast<const std::byte*>(data), size);
  const auto read = ucx::detail::decode_frame(wire);
  if (!read || read->version != ucx::detail::protocol_version_number) return 0;
  ucx::detail::status_error(read->status);
  frame::bytes again;
  read->encode(again);
  const auto twice = ucx::detail::decode_frame(again);
  if (!twice || twice->session != read->session || twice->length != read->length ||
      twice->code != read->code) {
    std::abort();
  }
  return 0;
}
