#include "region/exposed/atomic_execution.hpp"

#include <atomic>

#include "wire/wire.hpp"

namespace ucx::detail {
namespace {

constexpr std::uint8_t fetches_bit = 1;

template <class Integer>
std::uint64_t perform_as(const atomic_access& wanted, std::byte* address) noexcept {
  const std::atomic_ref<Integer> number(*reinterpret_cast<Integer*>(address));
  const auto operand = static_cast<Integer>(wanted.operand);
  switch (wanted.operation) {
    case atomic_operation::load:
      return number.load();
    case atomic_operation::store:
      return number.exchange(operand);
    case atomic_operation::compare_exchange: {
      auto found = static_cast<Integer>(wanted.expected);
      number.compare_exchange_strong(found, operand);
      return found;
    }
    case atomic_operation::add:
      return number.fetch_add(operand);
    case atomic_operation::bit_and:
      return number.fetch_and(operand);
    case atomic_operation::bit_or:
      return number.fetch_or(operand);
    case atomic_operation::bit_xor:
      return number.fetch_xor(operand);
  }
  return 0;
}

}  // namespace

atomic_payload encode(const atomic_access& wanted, bool fetches) noexcept {
  atomic_payload wire = {};
  wire[0] = static_cast<std::byte>(wanted.operation);
  wire[1] = static_cast<std::byte>(fetches ? fetches_bit : 0);
  put_at(wire, 8, wanted.operand);
  put_at(wire, 16, wanted.expected);
  return wire;
}

std::optional<decoded_atomic> decode_atomic(std::span<const std::byte> wire,
                                            std::uint64_t width) noexcept {
  if (wire.size() != std::tuple_size_v<atomic_payload>) return std::nullopt;
  if (width != 4 && width != 8) return std::nullopt;
  const auto operation = static_cast<atomic_operation>(wire[0]);
  const auto flags = std::to_integer<std::uint8_t>(wire[1]);
  if (!is_operation(operation) || flags > fetches_bit) return std::nullopt;
  for (const std::byte reserved : wire.subspan(2, 6)) {
    if (reserved != std::byte{0}) return std::nullopt;
  }
  decoded_atomic read;
  read.wanted.operation = operation;
  read.wanted.width = static_cast<std::size_t>(width);
  read.wanted.operand = take_at<std::uint64_t>(wire, 8);
  read.wanted.expected = take_at<std::uint64_t>(wire, 16);
  read.fetches = flags == fetches_bit;
  return read;
}

access access_for(const atomic_access& wanted, bool fetches) noexcept {
  if (wanted.operation == atomic_operation::load) return access::read;
  return fetches ? access::read_write : access::write;
}

std::uint64_t perform(const atomic_access& wanted, std::byte* address) noexcept {
  return wanted.width == 4 ? perform_as<std::uint32_t>(wanted, address)
                           : perform_as<std::uint64_t>(wanted, address);
}

}  // namespace ucx::detail
