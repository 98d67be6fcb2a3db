// Opens a pipe at a server, or over a connection, where its options make sense.
#pragma once

#include <ios>
#include <memory>
#include <optional>
#include <variant>

#include "pipes/pipe_engine.hpp"
#include "pipes/pipe_introduction.hpp"
#include "pipes/pipe_path.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx::detail {

inline bool reads(std::ios_base::openmode mode) noexcept { return (mode & std::ios_base::in) != 0; }
inline bool writes(std::ios_base::openmode mode) noexcept {
  return (mode & std::ios_base::out) != 0;
}

pipe_role role_of(std::ios_base::openmode mode) noexcept;
/// Returns why a pipe at `where` makes no sense; nothing if it does.
std::optional<error> complaint_about(const url& where, std::ios_base::openmode mode,
                                     const pipe_options& options);
/// Makes a path of a connection, where all makes sense.
path_or_error path_over(worker& driven, endpoint&& connection, std::ios_base::openmode mode,
                        const pipe_options& options);
/// Returns the options for the ends of a path, with the time that is left for connecting.
pipe_options options_behind(const pipe_path& path, const pipe_options& options);

/// A pipe, or why it can not be opened.
using engine_or_error = std::variant<std::unique_ptr<pipe_engine>, error>;

/// Both fail where the options make no sense, the other ends do not come, or there is no memory.
/// Meets them at the server of `where`.
engine_or_error open_at(const url& where, std::ios_base::openmode mode,
                        const pipe_options& options);
/// Takes over a connection that the program has.
engine_or_error open_over(worker& driven, endpoint&& connection, std::ios_base::openmode mode,
                          const pipe_options& options);

}  // namespace ucx::detail
