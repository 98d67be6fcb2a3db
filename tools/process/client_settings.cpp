#include "process/client_settings.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <optional>

#include "output/exit_code.hpp"
#include "process/connect_watch.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

constexpr double least_deadline = 0.001;
constexpr double most_deadline = 1e6;

/// A client that only reads has nothing to flush, and does not wait when it leaves a silent server.
constexpr std::chrono::milliseconds farewell{500};

/// How long the library may take to tell that its own deadline has passed.
constexpr std::chrono::seconds longest_way_back{2};

}  // namespace

client_options client_settings::options() const {
  client_options made;
  made.worker.close_timeout = farewell;
  if (!timeout_seconds) return made;
  // "nan" is a number to the parser, and in no range.
  if (!(*timeout_seconds >= least_deadline && *timeout_seconds <= most_deadline)) {
    throw failure(exit_code::usage, fmt::format("--timeout: {} is not between {} and {} seconds",
                                                *timeout_seconds, least_deadline, most_deadline));
  }
  const auto limit = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(*timeout_seconds));
  made.worker.connect_timeout = limit;
  made.worker.operation_timeout = limit;
  made.worker.close_timeout = std::min<std::chrono::nanoseconds>(limit, farewell);
  return made;
}

client client_settings::connect(const url& any) const {
  const client_options chosen = options();
  std::optional<connect_watch> watch;
  if (may_end_process) {
    watch.emplace(to_string(any), chosen.worker.connect_timeout + longest_way_back);
  }
  try {
    return client(any, chosen);
  } catch (const error& why) {
    if (why.code() != errc::busy) throw;
    throw failure(exit_code::no_connection, why.what());
  }
}

void add_timeout(CLI::App& command, client_settings& settings) {
  command
      .add_option("--timeout", settings.timeout_seconds,
                  "for connecting, and for each operation (default: 5 and 30)")
      ->type_name("SECONDS");
}

url url_with_name(const std::string& text) {
  url parsed(text);
  if (parsed.name().empty()) {
    throw failure(exit_code::usage,
                  fmt::format("\"{}\" names a server and nothing that it publishes: "
                              "`ucxio ls {}` lists that",
                              text, to_string(parsed)));
  }
  return parsed;
}

}  // namespace ucx::tool
