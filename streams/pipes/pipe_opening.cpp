#include "pipes/pipe_opening.hpp"

#include <chrono>
#include <cstddef>
#include <utility>

#include "pipes/pipe_introduction.hpp"
#include "pipes/pipe_meeting.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// Returns what makes no sense; nothing if all does.
std::string complaint_about(std::ios_base::openmode mode, const pipe_options& options) {
  const auto is_count = [](std::size_t count) {
    return count > 0 && count <= pipe_options::most_peers;
  };
  if (!reads(mode) && !writes(mode)) return "neither reads nor writes";
  if (options.window < pipe_options::least_window || options.window > pipe_options::most_window) {
    return "has a window of " + std::to_string(options.window) + " bytes";
  }
  if (!is_count(options.readers) || !is_count(options.writers)) {
    return "has no readers, no writers, or more than " + std::to_string(pipe_options::most_peers);
  }
  if (reads(mode) && writes(mode) && options.readers + options.writers != 2) {
    return "goes both ways, and has more than two ends";
  }
  const auto zero = std::chrono::nanoseconds::zero();
  if (options.meeting <= zero || options.silence <= zero || options.patience <= zero ||
      options.timeout < zero) {
    return "has a time that is not positive";
  }
  return {};
}

pipe_role role_of(std::ios_base::openmode mode) noexcept {
  if (reads(mode) && writes(mode)) return pipe_role::both;
  return reads(mode) ? pipe_role::reader : pipe_role::writer;
}

/// Returns what people are told: one that was met by worker address has no other, but maybe a name.
std::string name_of(const endpoint& connection) {
  if (const socket_address peer = connection.peer(); !peer.empty()) {
    return "pipe with " + to_string(peer);
  }
  const std::string name = connection.report().peer_name;
  return name.empty() ? "pipe with a peer met by worker address" : "pipe with \"" + name + '"';
}

}  // namespace

std::unique_ptr<pipe_path> path_to(const url& where, std::ios_base::openmode mode,
                                   const pipe_options& options, std::string& what,
                                   std::error_code& ec) {
  ec.clear();
  if (const std::string why = complaint_about(mode, options); !why.empty()) {
    ec = errc::invalid_argument;
    what = "a pipe at " + to_string(where) + " that " + why;
  } else if (where.name().empty()) {
    ec = errc::bad_url;
    what = "opening a pipe at \"" + to_string(where) + "\", which has no name";
  }
  if (ec) return nullptr;
  return meet(where, role_of(mode), options, what, ec);
}

std::unique_ptr<pipe_path> path_over(worker& driven, endpoint&& connection,
                                     std::ios_base::openmode mode, const pipe_options& options,
                                     std::string& what, std::error_code& ec) {
  ec = connection.status();
  what = "a pipe over a connection that is not usable";
  std::string why = complaint_about(mode, options);
  if (why.empty() && options.readers + options.writers != 2) why = "has more than two ends";
  if (!why.empty()) {
    ec = errc::invalid_argument;
    what = "a pipe over a connection that " + why;
  }
  if (ec) return nullptr;
  auto made = std::make_unique<pipe_path>();
  made->name = name_of(connection);
  made->driven = &driven;
  made->peers.push_back(std::move(connection));
  return made;
}

}  // namespace ucx::detail
