// What the two sides of raw UCX say to each other, and how they fail.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>

#include "raw_ucx.hpp"

namespace ucx::benchmarks {

/// Ids of our active messages.
enum message : unsigned { hello = 1, read_request, write_request, data, confirmation };

inline void require(ucs_status_t status, const char* what) {
  if (status == UCS_OK) return;
  throw std::runtime_error(std::string(what) + ": " + ucs_status_string(status));
}

inline raw_header header_of(const void* bytes, std::size_t length) {
  raw_header header;
  if (length != sizeof header) throw std::runtime_error("a raw message has another header");
  std::memcpy(&header, bytes, sizeof header);
  return header;
}

}  // namespace ucx::benchmarks
