// The commands and options of the command line, for shells and for readers.
#pragma once

#include <string>
#include <vector>

#include "output/cli_forward.hpp"

namespace ucx::tool {

struct outlined_option {
  std::vector<std::string> names;  ///< "-r", "--recursive"; nothing of what goes by its place.
  std::string value;               ///< "N"; nothing of a flag.
  std::string description;
  bool is_required = false;

  bool is_positional() const noexcept { return names.empty(); }
  /// Returns what its value may be, where those are few: "auto|json|none".
  std::vector<std::string> choices() const;
};

struct outlined_command {
  std::string name;  ///< With those of the commands above it: "pipe send".
  std::string description;
  std::string footer;
  std::vector<outlined_option> options;
  std::vector<outlined_command> commands;  ///< Below this one.

  /// Returns the name's last word.
  std::string word() const { return name.substr(name.rfind(' ') + 1); }  // npos + 1: 0
};

struct program_outline {
  outlined_command program;  ///< Its own options.
  std::vector<outlined_command> commands;

  /// Returns all commands, each before those below it.
  std::vector<const outlined_command*> all() const;
};

/// Reads it from what the parser knows, so that it is always true. Commands and options that are
/// hidden from `--help` are left out.
program_outline outline_of(const CLI::App& program);

}  // namespace ucx::tool
