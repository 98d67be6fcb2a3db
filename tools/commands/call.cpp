#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "commands/call_list.hpp"
#include "commands/call_types.hpp"
#include "commands/call_values.hpp"
#include "commands/commands.hpp"
#include "output/entry_text.hpp"
#include "output/exit_code.hpp"
#include "output/output.hpp"
#include "ucx/call_channel.hpp"
#include "ucx/call_request.hpp"
#include "ucx/call_writer.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

struct call_command_options {
  std::string url;
  std::string name;
  std::vector<std::string> unused;
};

/// Returns the arguments among what the parser left over: it takes none itself, because it would
/// take "[1,2]" for two.
std::vector<std::string> arguments_of(const CLI::App& command) {
  std::vector<std::string> left = command.remaining();
  if (left.empty()) return left;
  const std::string& first = left.front();
  if (first == "--") {
    left.erase(left.begin());
  } else if (first.size() > 1 && first.front() == '-' && (first[1] < '0' || first[1] > '9')) {
    throw failure(exit_code::usage,
                  fmt::format("{} is no option; behind `--` it is an argument", first));
  }
  return left;
}

void write_arguments(const call_description& function, const std::vector<std::string>& arguments,
                     call_writer& to) {
  const call_types types = types_of(function.called.signature());
  if (types.arguments.size() != arguments.size()) {
    throw failure(
        exit_code::usage,
        fmt::format("{} takes {} arguments, not {}: {}", function.called.name(),
                    types.arguments.size(), arguments.size(), function.called.signature().text()));
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    try {
      write_argument(types.arguments[i], arguments[i], to);
    } catch (const failure& why) {
      throw failure(why.code(), fmt::format("argument {} of {}: {}", i + 1, function.called.name(),
                                            why.what()));
    }
  }
  std::error_code ec;
  to.written(ec);
  if (!ec) return;
  throw failure(ec == errc::no_space ? exit_code::no_space : exit_code::usage,
                fmt::format("the arguments of {}: {}", function.called.name(), ec.message()));
}

/// Waits for the answer.
nlohmann::ordered_json result_of(call_request& called, const call_value_type& type) try {
  call_reader from = called.result();
  nlohmann::ordered_json result = read_result(type, from);
  from.finish();
  return result;
} catch (const error& why) {
  const bool is_of_answer = why.code() == errc::protocol_error ||
                            why.code() == errc::version_mismatch ||
                            why.code() == errc::not_supported || why.code() == errc::unexpected;
  if (!is_of_answer) throw;
  throw failure(exit_code::connection_lost,
                fmt::format("{}; the function may have run", why.what()));
}

void call(const call_command_options& options, const std::vector<std::string>& arguments,
          const client_settings& settings) {
  const url at(options.url);
  if (!at.name().empty()) {
    throw failure(
        exit_code::usage,
        fmt::format("\"{}\" is no server: the function stands behind the URL", options.url));
  }
  client server = settings.connect(at);
  const std::vector<call_description> all = functions_of(server, at);
  const call_description& function = function_named(all, options.name, at);
  call_writer values;
  write_arguments(function, arguments, values);
  const call_channel peer(server.connection());
  call_request called = peer.start_dynamic_call(function.called, values);
  write_out(to_document(result_of(called, types_of(function.called.signature()).result)));
}

}  // namespace

void add_call(CLI::App& program, client_settings& shared) {
  const auto options = std::make_shared<call_command_options>();
  CLI::App& command =
      *program.add_subcommand("call", "Call a function that the program of a server serves");
  command.add_option("URL", options->url, "the server: ucxs://HOST:PORT")->required();
  command.add_option("NAME", options->name, "the function: NAME, or NAME/VERSION")->required();
  // For the help alone: its check lets nothing through, so that the parser leaves all to the rest.
  command
      .add_option("ARGS", options->unused,
                  "an argument each: text as it stands, bytes in base64, others in JSON")
      ->check(CLI::Validator([](std::string&) { return std::string("-"); }, std::string()));
  command.validate_positionals();
  command.prefix_command();
  add_client_options(command, shared);
  command.footer(
      "The result is printed as JSON. Options stand before the arguments, and `--`\n"
      "before a first one that begins with a dash. `ucxio ls --calls URL` lists the\n"
      "functions, with the types of their arguments.\n\n"
      "Example:\n"
      "  ucxio call ucxs://127.0.0.1:7471 add 25 17");
  command.callback([options, &command, &shared] { call(*options, arguments_of(command), shared); });
}

}  // namespace ucx::tool
