#include "support/fake_ucp/fake_ucp_address.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "support/fake_ucp/fake_fabric.hpp"

namespace ucx::test {
namespace {

// Like UCX's own bytes, these have no length that their reader could check.
struct packed {
  std::uint64_t kind;
  std::uint64_t id;
  std::uint64_t filling[4];
  std::uint64_t sum;
};

constexpr std::uint64_t address_kind = 0x6164647265737321U;
constexpr std::uint64_t rkey_kind = 0x726b65792121212eU;
constexpr std::size_t type_at = 8;
constexpr std::array<std::byte, 10> rkey_head{std::byte{1}, {}, {}, {}, {},
                                              {},           {}, {}, {}, std::byte{sizeof(packed)}};

std::uint64_t sum_of(const packed& value) {
  return sim::checksum(reinterpret_cast<const std::byte*>(&value), offsetof(packed, sum));
}

packed* pack(std::uint64_t kind, std::uint64_t id) {
  auto* const made = new packed{kind, id, {id * 3, id * 5, id * 7, id * 11}, 0};
  made->sum = sum_of(*made);
  return made;
}

std::optional<std::uint64_t> unpack(std::uint64_t kind, const void* bytes) {
  packed value;
  std::memcpy(&value, bytes, sizeof(value));
  if (value.kind != kind || value.sum != sum_of(value)) return std::nullopt;
  return value.id;
}

}  // namespace

ucp_address_t* make_address(const sim::worker_object& worker, std::size_t& length) {
  length = sizeof(packed);
  return reinterpret_cast<ucp_address_t*>(pack(address_kind, worker.id));
}

void free_address(ucp_address_t* address) { delete reinterpret_cast<packed*>(address); }

std::optional<std::uint64_t> read_address(const ucp_address_t* address) {
  return unpack(address_kind, address);
}

// Laid out as UCX's: a map of memory domains, the type of memory, and for the only domain a length
// and the bytes.
void* make_rkey(const packed_rkey& named, std::size_t& size) {
  const std::unique_ptr<packed> content(pack(rkey_kind, named.memory_id));
  size = rkey_head.size() + sizeof(packed);
  auto* const made = new std::byte[size];
  std::copy(rkey_head.begin(), rkey_head.end(), made);
  made[type_at] = static_cast<std::byte>(named.type);
  std::memcpy(made + rkey_head.size(), content.get(), sizeof(packed));
  return made;
}

void free_rkey(void* buffer) { delete[] static_cast<std::byte*>(buffer); }

std::optional<packed_rkey> read_rkey(const void* buffer) {
  std::array<std::byte, rkey_head.size()> head;
  std::memcpy(head.data(), buffer, head.size());
  const auto type = static_cast<ucs_memory_type_t>(std::exchange(head[type_at], std::byte{0}));
  if (head != rkey_head || type >= UCS_MEMORY_TYPE_LAST) return std::nullopt;
  const auto id = unpack(rkey_kind, static_cast<const std::byte*>(buffer) + head.size());
  if (!id) return std::nullopt;
  return packed_rkey{*id, type};
}

}  // namespace ucx::test
