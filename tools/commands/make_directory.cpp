#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "commands/commands.hpp"
#include "copying/location.hpp"
#include "copying/server_clients.hpp"
#include "output/exit_code.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

struct directory_options {
  std::vector<std::string> urls;
  bool may_exist = false;
};

void make_directories(const directory_options& options, const client_settings& settings) {
  for (const std::string& each : options.urls) url_with_name(each);
  server_clients clients(settings);
  for (const std::string& each : options.urls) {
    const url wanted = url_with_name(each);
    client& server = clients.of(wanted);
    std::error_code ec;
    if (!options.may_exist) {
      server.make_directory(wanted.name());
      continue;
    }
    server.make_directory(wanted.name(), {}, ec);
    if (!ec) continue;
    const bool is_there =
        ec == errc::already_exists && server.stat(wanted.name()).type == entry_type::directory;
    if (!is_there) server.make_directory(wanted.name());  // which says what is wrong
  }
}

}  // namespace

void add_make_directory(CLI::App& program, client_settings& shared) {
  const auto options = std::make_shared<directory_options>();
  CLI::App& command = *program.add_subcommand("mkdir", "Make directories in a store");
  command.add_option("URL", options->urls, "what to make: ucx://HOST:PORT/NAME")->required();
  command.add_flag("-p,--parents", options->may_exist, "a directory that is there is no error");
  add_client_options(command, shared);
  command.footer(
      "Directories above it that are missing are made, with and without -p.\n\n"
      "Example:\n"
      "  ucxio mkdir ucx://127.0.0.1:7471/store/results");
  command.callback([options, &shared] { make_directories(*options, shared); });
}

}  // namespace ucx::tool
