// The exit statuses, by which the program tells what happened.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace ucx::tool {

/// One number for each kind of cause. They are part of the tool's interface:
/// `docs/reference/tool.md`.
enum class exit_code : int {
  ok = 0,
  failure = 1,
  usage = 2,
  not_found = 3,
  no_connection = 4,
  permission = 5,
  timed_out = 6,
  connection_lost = 7,
  content_changed = 8,
  output = 9,
  integrity = 10,
  partial = 11,
  no_space = 12,
  interrupted = 130,  ///< The process ends by the signal, which shells tell like this.
};

/// Returns the number for an operation that failed with `cause`. `busy` has no number: a file may
/// be busy, or a server that has no room for one more client, which `client_settings` tells.
exit_code exit_code_of(const std::error_code& cause) noexcept;

/// Returns the number for a system call that failed with `error`, a value of errno.
exit_code exit_code_of_errno(int error) noexcept;

/// Returns the number for the exception that is being handled. REQUIRES: one is.
exit_code exit_code_of_handled() noexcept;

/// Returns all of them as lines for people.
std::string_view exit_code_table() noexcept;

/// Ends the program with `code`; `what()` is what people are told, empty where they know by then.
class failure : public std::runtime_error {
 public:
  /// A failure between one file and its target, whatever `code` says, ends nothing but that copy.
  enum class reach { by_code, one_file };

  failure(exit_code code, const std::string& text, reach wide = reach::by_code)
      : std::runtime_error(text), code_(code), reach_(wide) {}
  exit_code code() const noexcept { return code_; }
  /// Returns whether what ended one file would end every other one, too.
  bool ends_all() const noexcept;

 private:
  exit_code code_;
  reach reach_;
};

}  // namespace ucx::tool
