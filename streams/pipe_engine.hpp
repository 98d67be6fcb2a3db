// What a pipe's streambuf holds: either end, or both, over one path.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "pipe_input.hpp"
#include "pipe_output.hpp"
#include "pipe_path.hpp"

namespace ucx::detail {

class pipe_engine {
 public:
  explicit pipe_engine(std::unique_ptr<pipe_path> over) noexcept : path(std::move(over)) {}

  void note(std::error_code why, std::string text) {
    error = why;
    error_text = std::move(text);
  }
  /// Keeps why the end failed that was used last; returns whether it did not.
  template <class End>
  bool keep(const End& used) {
    note(used.error(), used.error_text());
    return !error;
  }
  bool is_unwinding() const noexcept { return std::uncaught_exceptions() > exceptions; }

  // Ends die before their path.
  std::unique_ptr<pipe_path> path;
  std::optional<pipe_input> in;
  std::optional<pipe_output> out;
  std::error_code error;
  std::string error_text;
  bool closed = false;
  bool incomplete = false;     // the last write failed, and was not made up for
  std::vector<char> restored;  // what a read that failed had read
  char last = 0;               // read before the get area began, if anything was
  bool has_last = false;
  int exceptions = std::uncaught_exceptions();
};

}  // namespace ucx::detail
