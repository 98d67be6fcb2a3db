// Worker addresses and packed keys of the simulated UCX: bytes that are opaque to its user.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "support/fake_ucp/fake_objects.hpp"

namespace ucx::test {

/// Makes the bytes that name a worker; `free_address` takes them back.
ucp_address_t* make_address(const sim::worker_object& worker, std::size_t& length);
void free_address(ucp_address_t* address);
/// Returns the worker's id, or nothing where the bytes were damaged.
std::optional<std::uint64_t> read_address(const ucp_address_t* address);

/// A key's content: which memory, and of which type.
struct packed_rkey {
  std::uint64_t memory_id = 0;
  ucs_memory_type_t type = UCS_MEMORY_TYPE_HOST;
};

/// Makes the bytes that name a memory.
void* make_rkey(const packed_rkey& content, std::size_t& size);
void free_rkey(void* buffer);
std::optional<packed_rkey> read_rkey(const void* buffer);

}  // namespace ucx::test
