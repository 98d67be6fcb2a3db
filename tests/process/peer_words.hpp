// What the words of the process tests' commands mean.
#pragma once

#include <string>

#include "support/transports/network.hpp"
#include "ucx/access.hpp"
#include "ucx/context.hpp"

namespace ucx::test {

/// Returns the options of a context on that plane.
inline context_options context_options_of(const std::string& plane) {
  context_options options;
  options.share_memory = plane == "mapped" || plane == "lent";
  if (plane == "shared") {
    options.transports = {"posix", "cma", "self"};
    options.features = feature::rma | feature::wakeup;
  } else if (plane == "local") {  // as "shared", and messages go over it, too
    options.transports = {"posix", "cma", "self"};
  } else {
    const bool shares = options.share_memory;
    options = over_network();
    options.share_memory = shares;
  }
  return options;  // "tcp", "alone", "mapped" and "lent"
}

inline access access_of(const std::string& word) {
  if (word == "read") return access::read;
  return word == "write" ? access::write : access::read_write;
}

}  // namespace ucx::test
