#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "commands/commands.hpp"
#include "output/exit_code.hpp"
#include "output/output.hpp"
#include "output/printable.hpp"
#include "output/progress_line.hpp"
#include "output/size_option.hpp"
#include "process/interruption.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/stream.hpp"

namespace ucx::tool {
namespace {

constexpr std::size_t piece_size = std::size_t{1} << 20U;

struct cat_options {
  std::vector<std::string> urls;
  std::uint64_t offset = 0;
  std::uint64_t length = std::numeric_limits<std::uint64_t>::max();
  bool verify = false;
  bool follow = false;
  progress_mode progress = progress_mode::automatic;
};

/// So often somebody who follows looks whether anybody reads what is written.
constexpr std::chrono::milliseconds output_look{500};

struct source {
  url from;
  client through;
  remote_region region;
};

remote_region open(client& server, const url& from) {
  try {
    return server.open(from.name());
  } catch (const error& why) {
    const bool may_be_directory =
        why.code() == errc::not_supported || why.code() == errc::no_such_name;
    std::error_code unknown;
    if (!may_be_directory) throw;
    const bool is_directory = server.stat(from.name(), {}, unknown).type == entry_type::directory;
    if (unknown == errc::stale_store) throw error(unknown, "opening " + ucx::to_string(from));
    if (unknown || !is_directory) throw;
    const std::string place = ucx::to_string(from);
    throw failure(exit_code::usage,
                  fmt::format("{} is a directory: `ucxio ls {}` lists it, and `ucxio cp -r` copies "
                              "it",
                              place, shell_word(place)));
  }
}

/// Opens all of them before anything is written: a wrong name among many must not leave a result
/// that ends in the middle.
std::vector<source> open_all(const cat_options& options, const client_settings& settings) {
  std::vector<url> parsed;
  for (const std::string& text : options.urls) parsed.push_back(url_with_name(text));
  std::map<url, client> clients;
  std::vector<source> opened;
  for (const url& from : parsed) {
    auto at = clients.find(from.server());
    if (at == clients.end()) at = clients.emplace(from.server(), settings.connect(from)).first;
    opened.push_back({from, at->second.share(), open(at->second, from)});
    const std::uint64_t size = opened.back().region.size();
    if (options.offset <= size) continue;
    throw failure(exit_code::usage, fmt::format("{}: offset {} is behind its end, at {} bytes",
                                                ucx::to_string(from), options.offset, size));
  }
  return opened;
}

/// Throws the reason why `in` did not do all that it was to do.
[[noreturn]] void fail(const istream& in, const url& from) {
  const std::error_code why = in.error();
  throw failure(exit_code_of(why),
                fmt::format("{}: {}", ucx::to_string(from),
                            why ? why.message() : "it ended before the end that it told"));
}

void copy(const source& chosen, const cat_options& options, std::vector<char>& piece,
          transfer_counters& counters, progress_line& line) {
  std::uint64_t left = std::min(options.length, chosen.region.size() - options.offset);
  const bool verify = options.verify && chosen.region.kind() == memory_kind::host;
  if (options.verify && !verify) {
    line.say(fmt::format("ucxio: note: {}: --verify: memory of a device comes without checksums\n",
                         ucx::to_string(chosen.from)));
  }
  istream in(chosen.region, {.buffer_size = piece_size, .verify = verify});
  in.exceptions(std::ios_base::badbit);  // what failed is thrown as it is: a ucx::error
  // A server may claim more than positions can tell.
  if (!in.seekg(static_cast<std::streamoff>(options.offset))) fail(in, chosen.from);
  while (left > 0) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(left, piece.size()));
    try {
      in.read(piece.data(), static_cast<std::streamsize>(wanted));
    } catch (const error& failed) {
      throw failure(exit_code_of(failed.code()),
                    fmt::format("{}: {}", ucx::to_string(chosen.from), failed.what()));
    }
    const auto got = static_cast<std::size_t>(in.gcount());
    write_out({piece.data(), got});
    counters.bytes += got;
    if (got < wanted) fail(in, chosen.from);
    left -= got;
  }
}

/// Copies what is there and what comes, until the output has no reader any more.
void follow(source& chosen, const cat_options& options, std::vector<char>& piece,
            transfer_counters& counters) {
  ifstream in(chosen.through, chosen.from.name(), std::ios_base::in,
              {.buffer_size = piece_size, .follow_timeout = output_look, .verify = options.verify});
  const auto fail_here = [&in] { throw failure(exit_code_of(in.error()), in.error_message()); };
  if (!in || !in.seekg(static_cast<std::streamoff>(options.offset))) fail_here();
  for (std::uint64_t left = options.length; left > 0;) {
    // As much as is there: what comes is shown when it comes.
    if (in.peek() == ifstream::traits_type::eof()) {
      if (in.bad()) fail_here();
      if (output_is_closed()) throw output_closed();
      in.clear();
      continue;
    }
    const auto most = static_cast<std::streamsize>(std::min<std::uint64_t>(left, piece.size()));
    const std::streamsize got = in.readsome(piece.data(), most);
    if (in.bad()) fail_here();
    write_out({piece.data(), static_cast<std::size_t>(got)});
    counters.bytes += static_cast<std::uint64_t>(got);
    left -= static_cast<std::uint64_t>(got);
  }
}

void cat(const cat_options& options, const client_settings& settings, transfer_counters& counters,
         progress_line& line) {
  std::vector<char> piece(piece_size);
  std::vector<source> opened = open_all(options, settings);
  if (options.follow && opened.size() > 1) {
    throw failure(exit_code::usage, "--follow: one of them would never end; give one URL");
  }
  // Memory has the size that it has.
  if (options.follow && opened.front().region.can_refresh_size()) {
    follow(opened.front(), options, piece, counters);
    return close_output();
  }
  for (const source& each : opened) {
    counters.total_bytes += std::min(options.length, each.region.size() - options.offset);
  }
  counters.total_files = opened.size();
  counters.is_total_known = true;
  for (const source& each : opened) {
    copy(each, options, piece, counters, line);
    ++counters.files;
  }
  close_output();
}

}  // namespace

void add_cat(CLI::App& program, client_settings& shared) {
  const auto options = std::make_shared<cat_options>();
  CLI::App& command =
      *program.add_subcommand("cat", "Copy what is published to the standard output");
  command
      .add_option("URL", options->urls, "what to read, one after the other: ucxs://HOST:PORT/NAME")
      ->required();
  add_size(command, "--offset", options->offset, "of each: where to begin, in bytes");
  add_size(command, "--length", options->length, "of each: bytes at most");
  command.add_flag("--verify", options->verify,
                   "compare what arrives with checksums that the server sends");
  command.add_flag("-f,--follow", options->follow,
                   "go on with what is appended to the file, until it is interrupted");
  add_progress(command, options->progress);
  add_client_options(command, shared);
  command.footer(
      "N is bytes, or has a unit: 4K, 1MiB, 1G (1024 each).\n"
      "Everything is opened before the first byte is written. The first failure ends it.\n"
      "When nobody reads the standard output any more it ends quietly, with 0.\n\n"
      "Example:\n"
      "  ucxio cat ucxs://127.0.0.1:7471/weights --offset 1M --length 4K | od -c");
  command.callback([options, &shared] {
    transfer_counters counters;
    // Else what is read, or a pager, would be torn by it.
    run_watched(options->progress, counters, output_is_file(),
                [&](progress_line& line) { cat(*options, shared, counters, line); });
  });
}

}  // namespace ucx::tool
