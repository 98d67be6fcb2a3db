// The kinds of URL by which a client of this machine reaches a server, and what both sides need.
#pragma once

#include <filesystem>
#include <ostream>
#include <stdexcept>
#include <string>

#include "ucx/context.hpp"
#include "ucx/server.hpp"
#include "ucx/token_file.hpp"

namespace ucx::test {

/// "ucx", "socket", "tls" or "unix". Both sides have the folder, for a socket or a token.
struct url_scheme {
  std::string name;
  std::filesystem::path folder = {};

  bool is_of_ucx() const { return name == "ucx"; }

  /// Returns the options of a context of either side. Nothing is mapped: the server is asked.
  context_options context() const {
    context_options made{.share_memory = false};
    if (name == "ucx") {
      made.transports = {"tcp"};
      made.devices = {"lo"};
    } else if (name == "tls") {
      made.transports = {"tls"};
      made.token_file = folder / "tokens";
      if (!std::filesystem::exists(made.token_file)) token_file(made.token_file).create("own");
    } else if (name == "socket" || name == "unix") {
      made.transports = {"socket"};
    } else {
      throw std::invalid_argument("there is no scheme " + name);
    }
    return made;
  }
  server_options server() const {
    const bool has_path = name == "unix";
    return {.bind = has_path ? "unix:" + (folder / "server.sock").string() : "127.0.0.1:0",
            .context = context()};
  }
};

inline void PrintTo(const url_scheme& scheme, std::ostream* out) { *out << scheme.name; }

}  // namespace ucx::test
