// Secrets that a user gives on the standard input: arguments are seen by others who list processes.
#pragma once

#include <string>
#include <utility>

namespace ucx::tool {

/// A text that is wiped.
struct secret_text {
  secret_text() = default;
  explicit secret_text(std::string made) noexcept : text(std::move(made)) {}
  secret_text(const secret_text&) = delete;
  secret_text& operator=(const secret_text&) = delete;
  ~secret_text();

  std::string text;
};

/// Reads one line of the standard input, without spaces at its end. At a terminal it asks for
/// `what` first. Errors: failure with exit_code::failure.
void read_secret(secret_text& into, const std::string& what);

}  // namespace ucx::tool
