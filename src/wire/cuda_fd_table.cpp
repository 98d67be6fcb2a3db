#include "wire/cuda_fd_table.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "wire/wire.hpp"

namespace ucx::detail {
namespace {

constexpr std::uint64_t of_allocations = 1;
constexpr std::uint64_t of_pool = 2;
constexpr std::size_t length_at = 8;
constexpr std::size_t zeros_at = 16;

}  // namespace

std::uint64_t cuda_fd_table::size() const noexcept {
  std::uint64_t sum = 0;
  for (const part& each : parts) sum += each.size;
  return sum;
}

std::vector<std::byte> cuda_fd_table::encode() const {
  wire_writer writer;
  writer.put(pointer ? of_pool : of_allocations);
  writer.put(static_cast<std::uint64_t>(parts.size()));
  for (const part& each : parts) {
    writer.put(each.descriptor);
    writer.put(each.device);
    writer.put(each.inode);
    writer.put(each.size);
  }
  if (pointer) writer.put(*pointer);
  return std::move(writer.bytes());
}

std::optional<cuda_fd_table> decode_cuda_fd_table(std::span<const std::byte> wire) {
  wire_reader reader(wire);
  const auto kind = reader.take<std::uint64_t>();
  const auto count = reader.take<std::uint64_t>();
  if (kind != of_allocations && kind != of_pool) return std::nullopt;
  if (count == 0 || count > (kind == of_pool ? 1 : cuda_fd_table::most_parts)) return std::nullopt;
  cuda_fd_table made;
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count && reader.ok(); ++i) {
    cuda_fd_table::part read;
    read.descriptor = reader.take<std::uint64_t>();
    read.device = reader.take<std::uint64_t>();
    read.inode = reader.take<std::uint64_t>();
    read.size = reader.take<std::uint64_t>();
    if (read.descriptor > std::numeric_limits<std::int32_t>::max() || read.size == 0 ||
        read.size > std::numeric_limits<std::uint64_t>::max() - sum) {
      return std::nullopt;
    }
    sum += read.size;
    made.parts.push_back(read);
  }
  if (kind == of_pool) {
    const auto bytes = reader.take(std::tuple_size_v<cuda_fd_table::pool_pointer>);
    if (!reader.ok()) return std::nullopt;
    std::copy(bytes.begin(), bytes.end(), made.pointer.emplace().begin());
  }
  if (!reader.finished()) return std::nullopt;
  return made;
}

std::array<std::byte, 64> cuda_fd_location::encode() const noexcept {
  std::array<std::byte, 64> made = {};
  put_at(made, 0, address);
  put_at(made, length_at, length);
  return made;
}

std::optional<cuda_fd_location> decode_cuda_fd_location(
    std::span<const std::byte, 64> wire) noexcept {
  const cuda_fd_location read{take_at<std::uint64_t>(wire, 0),
                              take_at<std::uint64_t>(wire, length_at)};
  const auto rest = wire.subspan<zeros_at>();
  const bool is_clean =
      std::all_of(rest.begin(), rest.end(), [](std::byte each) { return each == std::byte{}; });
  if (!is_clean || read.address == 0 || read.length == 0 || read.length > cuda_fd_table::longest) {
    return std::nullopt;
  }
  return read;
}

}  // namespace ucx::detail
