// Where a server's agent may fetch from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ucx/url.hpp"

namespace ucx::tool {

/// A list of hosts; an empty one allows nothing. A value.
class fetch_rules {
 public:
  /// Adds "HOST", "HOST:PORT" or "any". Errors: failure with exit_code::usage.
  void allow(const std::string& text);
  bool empty() const noexcept { return !any_ && hosts_.empty(); }
  /// Returns whether the server of `from` is allowed: by its host as it is written there. No name
  /// is looked up.
  bool allows(const url& from) const noexcept;

 private:
  struct host {
    std::string name;
    std::uint16_t port = 0;  // any
  };

  bool any_ = false;
  std::vector<host> hosts_;
};

}  // namespace ucx::tool
