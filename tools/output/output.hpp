// Standard output, for results: all of it is written, or it is known why not. Standard error, for
// people: nothing depends on whether they read it.
#pragma once

#include <string_view>

namespace ucx::tool {

/// The standard output has no reader any more: its pipe is broken, or it was closed from the start.
/// That is no failure: the reader had enough.
struct output_closed {};

/// Keeps the descriptors 0, 1 and 2 from being given to sockets where the program was started
/// without them. REQUIRES: called before anything is opened.
void keep_standard_descriptors() noexcept;

/// Writes `bytes` to the standard output. Errors: output_closed; failure with exit_code::output.
/// REQUIRES: SIGPIPE is ignored.
void write_out(std::string_view bytes);

/// Writes `bytes` to the standard error stream. Errors are left out: a user that closed it does not
/// want to know. May wait for a reader. REQUIRES: SIGPIPE is ignored.
void say(std::string_view bytes) noexcept;

/// Returns whether the standard output has no reader any more, as far as a pipe or socket tells.
bool output_is_closed() noexcept;

/// Returns whether the standard output is a file, or a device that is no terminal.
bool output_is_file() noexcept;

/// Closes the standard output: some file systems tell only then that they are full. Afterwards it
/// is closed to everybody: output_closed. Errors: as write_out.
void close_output();

}  // namespace ucx::tool
