// What a source says of itself beside its bytes.
#pragma once

#include <sys/types.h>

#include <optional>

#include "ucx/entry.hpp"

namespace ucx::tool {

struct source_facts {
  std::optional<file_time> modified = {};
  std::optional<::mode_t> mode = {};
};

}  // namespace ucx::tool
