// Writes the elements of control messages' bodies.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <msgpack.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ucx/entry.hpp"
#include "wire/control_message.hpp"
#include "wire/wire.hpp"

namespace ucx::detail {

inline constexpr std::byte control_magic[]{std::byte{'U'}, std::byte{'C'}};
/// Of the sixteen bytes; bodies go by what hello agreed on.
inline constexpr std::uint8_t control_header_version = 1;

/// Writes a message: the header, then one array.
class control_writer {
 public:
  control_writer(const control_header& header, std::uint32_t elements) : packer_(*this) {
    bytes_.put(std::span(control_magic));
    bytes_.put(control_header_version);
    bytes_.put(static_cast<std::uint8_t>(header.type));
    bytes_.put(header.status);
    bytes_.put(header.request);
    if (elements > 0) packer_.pack_array(elements);
  }
  /// The packer calls this.
  void write(const char* data, std::size_t size) {
    bytes_.put(std::as_bytes(std::span(data, size)));
  }

  control_writer& put(std::uint64_t value) {
    packer_.pack(value);  // as short as it can be
    return *this;
  }
  control_writer& put_bool(bool value) {
    value ? packer_.pack_true() : packer_.pack_false();
    return *this;
  }
  control_writer& put(std::string_view text) {
    packer_.pack_str(static_cast<std::uint32_t>(text.size()));
    packer_.pack_str_body(text.data(), static_cast<std::uint32_t>(text.size()));
    return *this;
  }
  control_writer& put(std::span<const std::byte> binary) {
    packer_.pack_bin(static_cast<std::uint32_t>(binary.size()));
    packer_.pack_bin_body(reinterpret_cast<const char*>(binary.data()),
                          static_cast<std::uint32_t>(binary.size()));
    return *this;
  }
  control_writer& put(const entry& described) {
    packer_.pack_array(8);
    put(std::string_view(described.name));
    put(static_cast<std::uint64_t>(described.type));
    put(described.size);
    put(static_cast<std::uint64_t>(described.granted));
    put(static_cast<std::uint64_t>(described.kind));
    put(described.generation);
    put(described.modified);
    return put(static_cast<std::uint64_t>(std::max(described.device, -1) + 1));
  }
  control_writer& put(const std::optional<file_time>& moment) {
    if (!moment) {
      packer_.pack_nil();
      return *this;
    }
    packer_.pack_array(2);
    packer_.pack(moment->seconds);
    packer_.pack(moment->nanoseconds);
    return *this;
  }
  void begin_array(std::size_t size) { packer_.pack_array(static_cast<std::uint32_t>(size)); }

  std::vector<std::byte> take() { return std::move(bytes_.bytes()); }

 private:
  wire_writer bytes_;
  msgpack::packer<control_writer> packer_;
};

}  // namespace ucx::detail
