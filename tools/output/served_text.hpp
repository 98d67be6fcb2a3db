// The text by which a server that has begun tells people what it serves.
#pragma once

#include <span>
#include <string>

#include "ucx/publication.hpp"
#include "ucx/url.hpp"

namespace ucx::tool {

/// A server and its names, as far as they are told.
struct served {
  url server;
  std::span<const publication> files;
  std::span<const publication> stores;
  bool has_pipes = false;
};

/// Returns a line for each of them, and lines that may be pasted into a shell elsewhere.
std::string served_text(const served& all);

}  // namespace ucx::tool
