// What a server that has begun tells people.
#pragma once

#include <span>
#include <string>

#include "ucx/publication.hpp"
#include "ucx/url.hpp"

namespace ucx::tool {

/// What it serves, as far as it is told.
struct served {
  url server;
  std::span<const publication> files;
  std::span<const publication> stores;
  bool has_pipes = false;
};

/// Returns a line for each of them, and lines that may be pasted into a shell elsewhere.
std::string served_text(const served& all);

}  // namespace ucx::tool
