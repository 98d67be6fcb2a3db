#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <string>

#include "commands/commands.hpp"
#include "output/entry_text.hpp"
#include "output/output.hpp"
#include "output/printable.hpp"

namespace ucx::tool {
namespace {

struct stat_options {
  std::string url;
  bool json = false;
};

std::string lines(const entry& described, const url& from) {
  return fmt::format(
      "name        {}\nsize        {}\ntype        {}\naccess      {}\nmemory      {}\n"
      "generation  {}\nurl         {}\n",
      printable(described.name), described.size, ucx::to_string(described.type),
      name_of(described.granted), memory_text(described), described.generation,
      ucx::to_string(from));
}

void stat(const stat_options& options, const client_settings& settings) {
  const url from = url_with_name(options.url);
  client server = settings.connect(from);
  const entry described = server.stat(from.name());
  write_out(options.json ? to_document(to_json(described, from.server())) : lines(described, from));
}

}  // namespace

void add_stat(CLI::App& program, client_settings& shared) {
  const auto options = std::make_shared<stat_options>();
  CLI::App& command = *program.add_subcommand("stat", "Describe what is published under a name");
  command.add_option("URL", options->url, "the name's URL: ucxs://HOST:PORT/NAME")->required();
  command.add_flag("--json", options->json, "an object");
  add_client_options(command, shared);
  command.footer(
      "Example:\n"
      "  ucxio stat ucxs://127.0.0.1:7471/weights --json");
  command.callback([options, &shared] { stat(*options, shared); });
}

}  // namespace ucx::tool
