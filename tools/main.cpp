// ucxio: the library's command line tool. docs/reference/tool.md is its manual.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <exception>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "commands/commands.hpp"
#include "output/exit_code.hpp"
#include "output/old_names.hpp"
#include "output/output.hpp"
#include "output/printable.hpp"
#include "process/before_ucx.hpp"
#include "process/client_settings.hpp"
#include "process/shutdown_signals.hpp"
#include "ucx/error.hpp"
#include "ucx/version.hpp"

namespace {

using ucx::tool::exit_code;

/// Prints what follows the options as it was written; newer versions of the parser would wrap it.
/// A command that has commands tells their options, too.
class plain_texts : public CLI::Formatter {
 public:
  std::string make_subcommands(const CLI::App* command, CLI::AppFormatMode mode) const override {
    const bool is_whole_program = command->get_parent() == nullptr;
    return Formatter::make_subcommands(command, is_whole_program ? mode : CLI::AppFormatMode::All);
  }
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    if (group == ucx::tool::old_names_group) return {};
    return Formatter::make_group(std::move(group), is_positional, std::move(options));
  }
  std::string make_help(const CLI::App* command, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string text = Formatter::make_help(command, std::move(name), mode);
    // A group that is left out leaves an empty line behind.
    const std::size_t at = text.find("\n\n\n");
    if (at != text.npos) text.erase(at, 1);
    return text;
  }
  std::string make_footer(const CLI::App* command) const override {
    const std::string footer = command->get_footer();
    return footer.empty() ? footer : footer + '\n';
  }
};

/// Messages about wrong arguments may be kept in a log. A token that is among them is not told.
std::string without_tokens(std::string text) {
  for (const std::string_view begin : {"ucxt1-", "ucxi1-"}) {
    for (std::size_t at = text.find(begin); at != text.npos; at = text.find(begin, at)) {
      at += begin.size();
      const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz234567", at);
      text.replace(at, std::min(end, text.size()) - at, "...");
    }
  }
  return text;
}

exit_code complain(exit_code code, const std::string& text) {
  if (text.empty()) return code;
  ucx::tool::say("ucxio: " + without_tokens(ucx::tool::printable(text)) + '\n');
  return code;
}

/// Tells what the parser has to say: help, the version, or what is wrong with the arguments.
exit_code answer(CLI::App& program, const CLI::ParseError& end) {
  if (end.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    std::ostringstream text;
    std::ostringstream unused;
    program.exit(end, text, unused);
    ucx::tool::write_out(text.str());
    return exit_code::ok;
  }
  std::string command = "ucxio";
  for (const CLI::App* at = &program; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    command += ' ' + at->get_name();
  }
  return complain(exit_code::usage, std::string(end.what()) + "; see `" + command + " --help`");
}

/// Of a thread that can not be made the system says no more than "Resource temporarily
/// unavailable".
std::string text_of(const std::system_error& failed) {
  if (failed.code() != std::errc::resource_unavailable_try_again) return failed.what();
  return std::string("a thread can not be started: ") + failed.what() +
         "; see the limits of memory, processes and threads (ulimit -v, ulimit -u, and those of "
         "the "
         "container)";
}

std::string version_text() {
  return "ucxio " + to_string(ucx::version()) + " (UCX " + to_string(ucx::ucx_version()) +
         ", protocol " + std::to_string(ucx::protocol_version()) + ")";
}

void describe(CLI::App& program, ucx::tool::client_settings& settings) {
  program.name("ucxio");
  program.formatter(std::make_shared<plain_texts>());
  program.set_version_flag("--version", version_text);
  program.require_subcommand(1);
  ucx::tool::add_serve(program, settings);
  ucx::tool::add_list(program, settings);
  ucx::tool::add_cat(program, settings);
  ucx::tool::add_copy(program, settings);
  ucx::tool::add_put(program, settings);
  ucx::tool::add_make_directory(program, settings);
  ucx::tool::add_move(program, settings);
  ucx::tool::add_remove(program, settings);
  ucx::tool::add_stat(program, settings);
  ucx::tool::add_hash(program, settings);
  ucx::tool::add_pipe(program, settings);
  ucx::tool::add_call(program, settings);
  ucx::tool::add_info(program, settings);
  ucx::tool::add_bench(program, settings);
  ucx::tool::add_token(program);
  ucx::tool::add_login(program);
  ucx::tool::add_completion(program);
  ucx::tool::add_manual(program);
  ucx::tool::add_client_options(program, settings);
  program.footer(
      "Examples:\n"
      "  ucxio serve weights=/data/model.bin         prints ucxs://127.0.0.1:41231\n"
      "  ucxio ls ucxs://127.0.0.1:41231\n"
      "  ucxio cat ucxs://127.0.0.1:41231/weights | sha256sum\n\n" +
      std::string(ucx::tool::exit_code_table()));
}

exit_code run(int argc, const char* const* argv) {
  CLI::App program("Reads and publishes memory and files of other processes, over OpenUCX");
  ucx::tool::client_settings settings;
  settings.may_end_process = true;  // a client command's; `serve` has its own
  describe(program, settings);
  try {
    ucx::tool::warn_of_old_variables();
    try {
      program.parse(argc, argv);
    } catch (const CLI::ParseError& end) {
      const exit_code code = answer(program, end);
      if (code != exit_code::ok) return code;
    }
    ucx::tool::close_output();
    return exit_code::ok;
  } catch (const ucx::tool::output_closed&) {
    return exit_code::ok;
  } catch (const ucx::error& failed) {
    return complain(ucx::tool::exit_code_of_handled(), failed.what());
  } catch (const std::system_error& failed) {
    return complain(exit_code::failure, text_of(failed));
  } catch (const std::exception& failed) {
    return complain(ucx::tool::exit_code_of_handled(), failed.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  ucx::tool::restore_hangup();
  ucx::tool::keep_standard_descriptors();
  if (::getpid() == 1) ucx::tool::end_by_signals();
  // A reader who has gone is seen where it matters, by what write() returns.
  std::signal(SIGPIPE, SIG_IGN);
  // A file that becomes longer than the process may write is an error like others.
  std::signal(SIGXFSZ, SIG_IGN);
  return static_cast<int>(run(argc, argv));
}
