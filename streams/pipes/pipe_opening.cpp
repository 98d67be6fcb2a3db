#include "pipes/pipe_opening.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "pipes/pipe_introduction.hpp"
#include "pipes/pipe_meeting.hpp"
#include "pipes/pipe_path.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// Returns what makes no sense; nothing if all does.
std::string complaint_about(std::ios_base::openmode mode, const pipe_options& options) {
  const auto is_count = [](std::size_t count) {
    return count > 0 && count <= pipe_options::max_peers;
  };
  if (!reads(mode) && !writes(mode)) return "neither reads nor writes";
  if (options.window < pipe_options::min_window || options.window > pipe_options::max_window) {
    return "has a window of " + std::to_string(options.window) + " bytes";
  }
  if (!is_count(options.readers) || !is_count(options.writers)) {
    return "has no readers, no writers, or more than " + std::to_string(pipe_options::max_peers);
  }
  if (reads(mode) && writes(mode) && options.readers + options.writers != 2) {
    return "goes both ways, and has more than two ends";
  }
  const auto zero = std::chrono::nanoseconds::zero();
  if (options.connect_timeout <= zero || options.heartbeat_timeout <= zero ||
      options.slow_reader_timeout <= zero || options.timeout < zero) {
    return "has a time that is not positive";
  }
  return {};
}

/// Returns what people are told: one that was met by worker address has no other, but maybe a name.
std::string name_of(const endpoint& connection) {
  if (const socket_address peer = connection.peer(); !peer.empty()) {
    return "pipe with " + to_string(peer);
  }
  const std::string name = connection.report().peer_name;
  return name.empty() ? "pipe with a peer met by worker address" : "pipe with \"" + name + '"';
}

engine_or_error open_by(path_or_error over, std::ios_base::openmode mode,
                        const pipe_options& options) {
  if (const auto* const failed = std::get_if<error>(&over)) return *failed;
  auto path = std::get<std::unique_ptr<pipe_path>>(std::move(over));
  const pipe_options rest = options_behind(*path, options);
  try {
    auto made = std::make_unique<pipe_engine>(std::move(path));
    made->copying.timeout = options.timeout;
    if (reads(mode)) made->in.emplace(*made->path, rest);
    if (writes(mode)) made->out.emplace(*made->path, rest);
    if (made->out && !made->out->open() && made->out->error()) {
      return error(made->out->error(), made->out->error_text());
    }
    return made;
  } catch (const std::bad_alloc&) {
    return error(errc::no_memory,
                 "opening a pipe with a window of " + std::to_string(options.window) + " bytes");
  }
}

}  // namespace

pipe_role role_of(std::ios_base::openmode mode) noexcept {
  if (reads(mode) && writes(mode)) return pipe_role::both;
  return reads(mode) ? pipe_role::reader : pipe_role::writer;
}

std::optional<error> complaint_about(const url& where, std::ios_base::openmode mode,
                                     const pipe_options& options) {
  if (const std::string why = complaint_about(mode, options); !why.empty()) {
    return error(errc::invalid_argument, "a pipe at " + to_string(where) + " that " + why);
  }
  if (where.name().empty()) {
    return error(errc::bad_url,
                 "opening a pipe at \"" + to_string(where) + "\", which has no name");
  }
  return std::nullopt;
}

path_or_error path_over(worker& driven, endpoint&& connection, std::ios_base::openmode mode,
                        const pipe_options& options) {
  std::string why = complaint_about(mode, options);
  if (why.empty() && options.readers + options.writers != 2) why = "has more than two ends";
  if (!why.empty()) {
    return error(errc::invalid_argument, "a pipe over a connection that " + why);
  }
  if (const std::error_code ec = connection.status()) {
    return error(ec, "a pipe over a connection that is not usable");
  }
  auto made = std::make_unique<pipe_path>();
  made->name = name_of(connection);
  made->driven = &driven;
  made->peers.push_back(std::move(connection));
  return made;
}

pipe_options options_behind(const pipe_path& path, const pipe_options& options) {
  pipe_options rest = options;
  if (!path.until) return rest;
  const auto left = *path.until - std::chrono::steady_clock::now();
  rest.connect_timeout = std::max<std::chrono::nanoseconds>(left, std::chrono::milliseconds(1));
  return rest;
}

engine_or_error open_at(const url& where, std::ios_base::openmode mode,
                        const pipe_options& options) {
  if (auto complaint = complaint_about(where, mode, options)) return *std::move(complaint);
  return open_by(meet(where, role_of(mode), options), mode, options);
}

engine_or_error open_over(worker& driven, endpoint&& connection, std::ios_base::openmode mode,
                          const pipe_options& options) {
  return open_by(path_over(driven, std::move(connection), mode, options), mode, options);
}

}  // namespace ucx::detail
