// Options whose value is a number of bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "output/cli_forward.hpp"

namespace ucx::tool {

/// Adds an option that takes bytes, with a unit if wanted: 4096, 4K, 1MiB.
CLI::Option* add_size(CLI::App& command, const std::string& name, std::uint64_t& size,
                      const std::string& what);
/// As add_size(), and it may be given several times.
void add_sizes(CLI::App& command, const std::string& name, std::vector<std::uint64_t>& sizes,
               const std::string& what);

/// Adds `--bwlimit`: bytes in a second at most; 0 is none, and can not be given.
void add_rate(CLI::App& command, std::uint64_t& rate);

/// Returns what such an option would make of `text`; nothing where that is no number of bytes.
std::optional<std::uint64_t> size_in(std::string text);

}  // namespace ucx::tool
