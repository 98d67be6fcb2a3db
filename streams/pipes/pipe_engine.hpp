// The state of a pipe's streambuf: either end, or both, over one path.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "pipes/pipe_input.hpp"
#include "pipes/pipe_output.hpp"
#include "pipes/pipe_path.hpp"
#include "ucx/context.hpp"
#include "ucx/request.hpp"

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
  /// As keep(), for a write; its failure is not forgotten while reads succeed.
  bool keep_write() {
    if (out->error()) {
      note_write(out->error(), out->error_text());
    } else {
      note({}, {});
    }
    return !error;
  }
  void note_write(std::error_code why, std::string text) {
    note(why, std::move(text));
    write_error = error;
    write_text = error_text;
  }
  /// A write was cut short behind `position`, with so many bytes missing.
  void miss(std::uint64_t position, std::uint64_t missing) noexcept {
    due = std::max(due, position + missing);
  }
  /// Returns whether it is that of a process that this one was forked from.
  bool is_inherited() const noexcept { return made.is_inherited(); }
  bool is_unwinding() const noexcept { return std::uncaught_exceptions() > exceptions; }

  const process_stamp made = {};
  // Ends die before their path.
  std::unique_ptr<pipe_path> path;
  std::optional<pipe_input> in;
  std::optional<pipe_output> out;
  io_options copying;  // from and to memory of devices
  std::error_code error;
  std::string error_text;
  bool closed = false;
  std::error_code write_error;  // of the last write that failed
  std::string write_text;
  std::error_code output_result;  // of closing it
  std::uint64_t due = 0;          // offered by the program, where writes were cut short
  std::vector<char> restored;     // bytes that a failed read had read
  char last = 0;                  // the byte before the get area
  bool has_last = false;
  int exceptions = std::uncaught_exceptions();
};

}  // namespace ucx::detail
