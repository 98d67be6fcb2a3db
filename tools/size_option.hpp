// Options whose value is a number of bytes.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace ucx::tool {

/// Adds an option that takes bytes, with a unit if wanted: 4096, 4K, 1MiB.
void add_size(CLI::App& command, const std::string& name, std::uint64_t& size,
              const std::string& what);
/// The same, and it may be given several times.
void add_sizes(CLI::App& command, const std::string& name, std::vector<std::uint64_t>& sizes,
               const std::string& what);

}  // namespace ucx::tool
