// What a pipe is opened over, where its options make sense.
#pragma once

#include <ios>
#include <memory>
#include <string>
#include <system_error>

#include "pipes/pipe_path.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/pipe_options.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx::detail {

inline bool reads(std::ios_base::openmode mode) noexcept { return (mode & std::ios_base::in) != 0; }
inline bool writes(std::ios_base::openmode mode) noexcept {
  return (mode & std::ios_base::out) != 0;
}

/// Both return nothing, and why, where the options make no sense, or the other ends do not come.
/// Meets them at the server of `where`.
std::unique_ptr<pipe_path> path_to(const url& where, std::ios_base::openmode mode,
                                   const pipe_options& options, std::string& what,
                                   std::error_code& ec);
/// Takes over a connection that the program has.
std::unique_ptr<pipe_path> path_over(worker& driven, endpoint&& connection,
                                     std::ios_base::openmode mode, const pipe_options& options,
                                     std::string& what, std::error_code& ec);

}  // namespace ucx::detail
