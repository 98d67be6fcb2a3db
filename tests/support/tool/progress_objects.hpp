// What `--progress json` has told.
#pragma once

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace ucx::test {

/// Returns the objects among the lines of a standard error stream.
inline std::vector<nlohmann::ordered_json> progress_in(const std::string& errors) {
  std::vector<nlohmann::ordered_json> all;
  std::istringstream lines(errors);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('{')) all.push_back(nlohmann::ordered_json::parse(line));
  }
  return all;
}

/// Returns the last of them; null where there is none.
inline nlohmann::ordered_json last_progress_in(const std::string& errors) {
  const std::vector<nlohmann::ordered_json> all = progress_in(errors);
  return all.empty() ? nlohmann::ordered_json() : all.back();
}

}  // namespace ucx::test
