#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <string>
#include <string_view>

#include "commands/commands.hpp"
#include "commands/program_outline.hpp"
#include "output/exit_code.hpp"
#include "output/output.hpp"
#include "ucx/version.hpp"

namespace ucx::tool {
namespace {

/// Returns text as roff shows it, whatever it begins with.
std::string roff(std::string_view text) {
  std::string made;
  bool is_begin = true;
  for (const char each : text) {
    if (is_begin && (each == '.' || each == '\'')) made += "\\&";
    if (each == '\\') {
      made += "\\e";
    } else if (each == '-') {
      made += "\\-";
    } else {
      made += each;
    }
    is_begin = each == '\n';
  }
  return made;
}

std::string as_it_is(std::string_view text) {
  return ".nf\n" + roff(text) + (text.ends_with('\n') ? "" : "\n") + ".fi\n";
}

std::string options_text(const outlined_command& command) {
  std::string text;
  for (const outlined_option& option : command.options) {
    std::string head = fmt::format("{}", fmt::join(option.names, ", "));
    if (!option.value.empty()) head += (head.empty() ? "" : " ") + option.value;
    text += ".TP\n.B " + roff(head) + '\n' + roff(option.description) + '\n';
  }
  return text;
}

constexpr std::string_view environment =
    "UCX_...                 what UCX is to use, as its own documentation says\n"
    "UCXIO_TRANSFER_METHOD   message, rma, cma, cuda_ipc or mapped: how bytes move\n";

std::string manual(const program_outline& outline) {
  std::string text = ".TH UCXIO 1 \"\" \"ucxio " + to_string(ucx::version()) + "\"\n";
  text += ".SH NAME\nucxio \\- " + roff(outline.program.description) + '\n';
  text += ".SH SYNOPSIS\n";
  for (const outlined_command* each : outline.all()) {
    if (!each->commands.empty()) continue;
    text += ".B ucxio " + roff(each->name) + "\n";
    for (const outlined_option& option : each->options) {
      if (!option.is_positional()) continue;
      text += roff(option.is_required ? option.value : '[' + option.value + ']') + '\n';
    }
    text += "[options]\n.br\n";
  }
  text += ".SH OPTIONS\n" + options_text(outline.program);
  text += ".SH COMMANDS\n";
  for (const outlined_command* each : outline.all()) {
    text += ".SS " + roff(each->name) + '\n' + roff(each->description) + ".\n";
    text += options_text(*each);
    text += ".PP\n" + as_it_is(each->footer);
  }
  text += ".SH EXIT STATUS\n" + as_it_is(exit_code_table());
  text += ".SH ENVIRONMENT\n" + as_it_is(environment);
  return text;
}

}  // namespace

void add_manual(CLI::App& program) {
  CLI::App& command = *program.add_subcommand("man", "Print this program's man page");
  command.footer(
      "Example:\n"
      "  ucxio man | man -l -");
  command.callback([&program] { write_out(manual(outline_of(program))); });
}

}  // namespace ucx::tool
