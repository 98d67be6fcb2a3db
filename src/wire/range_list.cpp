#include "wire/range_list.hpp"

#include "wire/wire.hpp"

namespace ucx::detail {
namespace {

void put(std::vector<std::byte>& wire, std::uint64_t value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    wire.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
}

}  // namespace

void range_list::begin(std::size_t count, std::vector<std::byte>& wire) {
  wire.clear();
  put(wire, count);
}

void range_list::append(const byte_range& range, std::vector<std::byte>& wire) {
  put(wire, range.offset);
  put(wire, range.length);
}

std::optional<range_list> range_list::decode(std::span<const std::byte> wire) noexcept {
  wire_reader reader(wire);
  const auto count = reader.take<std::uint64_t>();
  if (!reader.ok() || count == 0 || count > most_ranges) return std::nullopt;
  range_list read;
  const std::size_t length = static_cast<std::size_t>(count) * range_size;
  read.ranges_ = reader.take(length);
  if (!reader.ok()) return std::nullopt;
  read.rest_ = wire.subspan(range_list_head + length);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t each = read.at(i).length;
    if (each == 0 || each > most_batch_bytes - read.total_) return std::nullopt;
    read.total_ += each;
  }
  return read;
}

byte_range range_list::at(std::size_t index) const noexcept {
  wire_reader reader(ranges_.subspan(index * range_size, range_size));
  byte_range read;
  read.offset = reader.take<std::uint64_t>();
  read.length = reader.take<std::uint64_t>();
  return read;
}

}  // namespace ucx::detail
