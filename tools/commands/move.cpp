#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "commands/commands.hpp"
#include "copying/tree_walk.hpp"
#include "output/exit_code.hpp"

namespace ucx::tool {
namespace {

struct move_options {
  std::string from;
  std::string to;
};

void move(const move_options& options, const client_settings& settings) {
  const url from = url_with_name(options.from);
  const location to(options.to);
  if (!to.is_remote() || from.server() != to.remote().server()) {
    throw failure(exit_code::usage, "mv: from \"" + options.from + "\" to \"" + options.to +
                                        "\" is not within one server: use cp, then rm");
  }
  server_clients clients(settings);
  const location source(options.from);
  const bool into = to.ends_in_slash() || is_directory(to, clients);
  const location target = into ? to.below(source.leaf()) : to;
  clients.of(from).rename(source.remote().name(), target.remote().name());
}

}  // namespace

void add_move(CLI::App& program, client_settings& shared) {
  const auto options = std::make_shared<move_options>();
  CLI::App& command = *program.add_subcommand("mv", "Rename a file or directory within a store");
  command.add_option("FROM", options->from, "what it is: ucxs://HOST:PORT/NAME")->required();
  command.add_option("TO", options->to, "its new URL, or a directory where it goes")->required();
  add_client_options(command, shared);
  command.footer(
      "What has the new name is replaced; directories that are missing are made.\n\n"
      "Example:\n"
      "  ucxio mv ucxs://127.0.0.1:7471/store/new ucxs://127.0.0.1:7471/store/current");
  command.callback([options, &shared] { move(*options, shared); });
}

}  // namespace ucx::tool
