#include <CLI/CLI.hpp>

#include <memory>
#include <string>

#include "commands/commands.hpp"
#include "output/exit_code.hpp"
#include "process/core_dumps.hpp"
#include "process/secret_line.hpp"
#include "ucx/token_file.hpp"
#include "ucx/url.hpp"

namespace ucx::tool {
namespace {

struct login_options {
  std::string url;
  std::string file;
};

void log_in(const login_options& options) {
  const url server(options.url);
  if (!server.is_tls()) {
    throw failure(exit_code::usage, options.url + ": only servers of ucxs:// have tokens");
  }
  token_file file(options.file);
  secret_text code;
  read_secret(code, "the code");
  file.log_in(server, code.text);
}

}  // namespace

void add_login(CLI::App& program) {
  const auto options = std::make_shared<login_options>();
  CLI::App& command = *program.add_subcommand(
      "login", "Get a token from a server, by the code of `ucxio serve --invite`");
  command.add_option("URL", options->url, "the server: ucxs://HOST:PORT")->required();
  command
      .add_option("--token-file", options->file,
                  "the file of tokens (default: ~/.config/ucxio/tokens)")
      ->type_name("PATH");
  add_no_core(command);
  command.footer(
      "The code is read from the terminal or the standard input. It counts once, for ten "
      "minutes.\n\n"
      "Example:\n"
      "  ucxio serve --invite --bind 0.0.0.0:7471 notes.txt    prints URL and code\n"
      "and there:\n"
      "  ucxio login ucxs://HOST:7471\n"
      "  ucxio cat ucxs://HOST:7471/notes.txt");
  command.callback([options] { log_in(*options); });
}

}  // namespace ucx::tool
