#include "commands/listening_options.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>

#include "output/exit_code.hpp"

namespace ucx::tool {

std::vector<CLI::Option*> add_listening_options(CLI::App& command, listening_options& options) {
  CLI::Option* bind =
      command
          .add_option("--bind", options.bind,
                      "where to listen; port 0 lets the system choose (default: 127.0.0.1:0)")
          ->type_name("HOST:PORT");
  CLI::Option* insecure = command.add_flag(
      "--insecure", options.insecure,
      "with --ucx or --socket, allow other addresses than loopback: everyone who can connect gets "
      "access");
  CLI::Option* ucx = command.add_flag(
      "--ucx", options.by_ucx,
      "serve ucx:// by UCX, with RDMA and mapped memory: everyone who can connect, on loopback "
      "each user of this machine, may read and write this whole process");
  CLI::Option* socket =
      command
          .add_flag("--socket", options.by_socket,
                    "serve ucx+tcp:// by a TCP socket without UCX: clients reach nothing of this "
                    "process but what is served")
          ->excludes(ucx);
  CLI::Option* tls = command
                         .add_flag("--tls", options.by_tls,
                                   "serve ucxs:// by TLS alone, also to this user: without the "
                                   "Unix socket that is beside it by default")
                         ->excludes(socket)
                         ->excludes(ucx);
  CLI::Option* by_unix =
      command
          .add_flag(fmt::format("--unix{{{}}}", any_unix_place), options.unix_place,
                    "serve ucx+unix:// by a Unix socket alone, for clients of this user and "
                    "root; PATH ends in .sock (default: $XDG_RUNTIME_DIR/ucxio/..., else /tmp/...)")
          ->type_name("[=PATH]")
          ->excludes(socket)
          ->excludes(tls)
          ->excludes(ucx);
  return {bind, insecure, ucx, socket, tls, by_unix};
}

std::string place_of(const listening_options& options, const std::vector<std::string>& peer_users,
                     const char* otherwise) {
  const auto fail = [](const char* why) { throw failure(exit_code::usage, why); };
  const bool by_unix = !options.unix_place.empty();
  if (!by_unix && !peer_users.empty()) fail("--peer-user: needs --unix");
  if (by_unix && options.bind) fail("--unix: a server by a Unix socket has no --bind");
  if (options.insecure && !options.by_ucx && !options.by_socket) {
    fail(
        "--insecure: needs --ucx or --socket: with TLS, as by default, clients have a token, also "
        "beyond loopback");
  }
  if (!by_unix) return options.bind.value_or(otherwise);
  if (options.unix_place == any_unix_place) return "unix:";
  return "unix:" + std::filesystem::absolute(options.unix_place).lexically_normal().string();
}

std::vector<std::string> transports_of(const listening_options& options) {
  if (options.by_ucx) return {"ucx"};
  if (options.by_tls) return {"tls"};
  if (options.by_socket) return {"socket"};
  return {};  // the library's choice
}

std::string_view note_of_no_tls(const listening_options& options, const std::string& url) noexcept {
  if (!options.unix_place.empty() || !url.starts_with("ucx+unix:")) return {};
  return "ucxio: note: there is no TLS: only clients of this user and of root are served\n";
}

}  // namespace ucx::tool
