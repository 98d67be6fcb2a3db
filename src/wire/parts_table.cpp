#include "wire/parts_table.hpp"

#include "wire/wire.hpp"

namespace ucx::detail {
void encode_parts_table(std::span<const std::span<const std::byte>> parts,
                        std::vector<std::byte>& table) {
  table.resize(parts_table_size(parts.size()));
  put_at<std::uint64_t>(table, 0, parts.size());
  std::size_t at = 0;
  for (const std::span<const std::byte>& each : parts) {
    put_at<std::uint64_t>(table, at += sizeof(std::uint64_t), each.size());
  }
}

std::optional<std::vector<std::span<std::byte>>> decode_parts(std::span<std::byte> message) {
  wire_reader reader(message);
  const auto count = reader.take<std::uint64_t>();
  if (!reader.ok() || count > message.size() / sizeof(std::uint64_t) - 1) return {};
  std::size_t begin = parts_table_size(static_cast<std::size_t>(count));
  std::vector<std::span<std::byte>> parts;
  parts.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto length = reader.take<std::uint64_t>();
    if (length > message.size() - begin) return {};
    parts.push_back(message.subspan(begin, static_cast<std::size_t>(length)));
    begin += static_cast<std::size_t>(length);
  }
  if (begin != message.size()) return {};
  return parts;
}

}  // namespace ucx::detail
