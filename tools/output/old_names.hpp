// Old names of options and environment variables. They work for one version, with a warning.
#pragma once

#include <string>

#include "output/cli_forward.hpp"

namespace ucx::tool {

/// The group of those options. The parser's own hidden group, an empty name, would also leave them
/// out of errors.
inline constexpr const char* old_names_group = "Old names";

/// Adds an option that no help text shows. It gives its values to `now`, then warns. Both on one
/// command line are an error. REQUIRES: `command` has `now`, and lives as long as the parser.
void add_old_name(CLI::App& command, const std::string& before, CLI::Option* now);

/// Warns of each environment variable that counts by its old name.
void warn_of_old_variables();

}  // namespace ucx::tool
