#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "commands/commands.hpp"
#include "copying/copy_ends.hpp"
#include "copying/rate_limit.hpp"
#include "output/exit_code.hpp"
#include "output/progress_line.hpp"
#include "output/size_option.hpp"
#include "process/interruption.hpp"

namespace ucx::tool {
namespace {

constexpr std::size_t piece_size = std::size_t{1} << 20U;

struct put_options {
  std::string url;
  std::uint64_t rate = 0;
  progress_mode progress = progress_mode::automatic;
};

/// Reads what there is, one byte at least; nothing at the end.
std::size_t read_input(std::span<std::byte> into) {
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, into.data(), into.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EINTR) continue;
    throw failure(exit_code::failure,
                  "cannot read the standard input: " +
                      std::error_code(errno, std::generic_category()).message());
  }
}

void put(const put_options& options, const client_settings& settings, transfer_counters& counters) {
  const url to = url_with_name(options.url);
  server_clients clients(settings);
  // An exception behind this leaves nothing at the server.
  const std::unique_ptr<copy_target> target = open_target(location(to), 0, {}, clients);
  rate_limit limit(options.rate);
  std::vector<std::byte> buffer(limit.piece(piece_size));
  std::uint64_t offset = 0;
  while (const std::size_t got = read_input(buffer)) {
    limit.take(got, {});
    target->write(offset, std::span(buffer).first(got));
    offset += got;
    counters.bytes += got;
  }
  target->complete(offset);
  target->commit({});
}

}  // namespace

void add_put(CLI::App& program, client_settings& shared) {
  const auto options = std::make_shared<put_options>();
  CLI::App& command =
      *program.add_subcommand("put", "Write the standard input to a file of a store");
  command.add_option("URL", options->url, "where to: ucxs://HOST:PORT/NAME")->required();
  add_rate(command, options->rate);
  add_progress(command, options->progress);
  add_client_options(command, shared);
  command.footer(
      "The file shows when the standard input has ended well, and not at all otherwise. Memory of\n"
      "a server's is written from its beginning on.\n\n"
      "Example:\n"
      "  ucxio put ucxs://127.0.0.1:7471/store/log < log\n"
      "  tar c checkpoint | ucxio put ucxs://127.0.0.1:7471/store/checkpoint.tar");
  command.callback([options, &shared] {
    transfer_counters counters;
    run_watched(options->progress, counters, true,
                [&](progress_line&) { put(*options, shared, counters); });
  });
}

}  // namespace ucx::tool
