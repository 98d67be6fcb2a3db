#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <string>

#include "commands/commands.hpp"
#include "output/exit_code.hpp"
#include "output/output.hpp"
#include "process/core_dumps.hpp"
#include "process/secret_line.hpp"
#include "ucx/token_file.hpp"

namespace ucx::tool {
namespace {

struct token_options {
  std::string file;
  std::string name;
  bool oldest_only = false;
};

void make(const token_options& options) {
  token_file file(options.file);
  const secret_text made(file.create(options.name));
  write_out(made.text);
  write_out("\n");
}

void add(const token_options& options) {
  token_file file(options.file);
  secret_text line;
  read_secret(line, "the token");
  file.add(options.name, line.text);
}

void list(const token_options& options) {
  for (const token_file::entry& each : token_file(options.file).list()) {
    write_out(fmt::format("{} {}\n", each.is_accepted ? "accept" : "use   ", each.name));
  }
}

void remove(const token_options& options) {
  token_file file(options.file);
  if (file.remove(options.name, options.oldest_only) != 0) return;
  throw failure(exit_code::not_found,
                fmt::format("{} has no token named {}", file.path().string(), options.name));
}

/// Of a text that looks like a token nothing is repeated.
void check_name(const token_options& options) {
  if (!options.name.starts_with("ucxt")) return;
  throw failure(exit_code::usage,
                "a token is never an argument, which others can see: give it on the standard "
                "input of `ucxio token add HOST`");
}

}  // namespace

void add_token(CLI::App& program) {
  const auto options = std::make_shared<token_options>();
  CLI::App& command = *program.add_subcommand(
      "token", "Make, list and remove the tokens of ucxs://, the servers with TLS");
  command.require_subcommand(1);
  const auto add_command = [&](const char* name, const char* text,
                               void (*run)(const token_options&), const char* what) -> CLI::App& {
    CLI::App& made = *command.add_subcommand(name, text);
    if (what != nullptr) {
      made.add_option(what, options->name, "a name: letters, digits and ._-@:[]%")->required();
    }
    made.add_option("--token-file", options->file,
                    "the file of tokens (default: ~/.config/ucxio/tokens)")
        ->type_name("PATH");
    add_no_core(made);
    made.callback([options, run] {
      check_name(*options);
      run(*options);
    });
    return made;
  };
  add_command("new", "Make a token that your servers accept, and print it for one client", &make,
              "NAME");
  add_command("add", "Take the token of a server, HOST or HOST:PORT, from the standard input", &add,
              "HOST");
  add_command("list", "List the names of tokens, the oldest first", &list, nullptr);
  add_command("remove", "Remove the tokens of a name", &remove, "NAME")
      .add_flag("--oldest", options->oldest_only, "only the oldest, as two may have one name");
  command.footer(
      "Example:\n"
      "  ucxio token new alice                      prints ucxt1-...\n"
      "  ucxio serve --tls notes.txt                prints ucxs://HOST:PORT\n"
      "and there, with the token on the standard input:\n"
      "  ucxio token add HOST\n"
      "  ucxio cat ucxs://HOST:PORT/notes.txt");
}

}  // namespace ucx::tool
