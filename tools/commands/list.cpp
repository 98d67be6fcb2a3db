#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands/call_list.hpp"
#include "commands/commands.hpp"
#include "copying/server_directories.hpp"
#include "copying/tree_walk.hpp"
#include "output/entry_text.hpp"
#include "output/output.hpp"
#include "output/printable.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

struct list_options {
  std::string url;
  bool json = false;
  bool full = false;
  bool names_only = false;
  bool calls = false;
};

/// Prints entries as they come, because only the server knows how many there are. Keeps those alone
/// that are printed next, whose columns are as wide as those before them.
class printed_list {
 public:
  printed_list(const list_options& options, url server)
      : options_(options), server_(std::move(server)) {}

  void add(std::vector<entry>&& some) {
    for (const entry& each : some) bytes_ += sizeof each + each.name.size();
    std::move(some.begin(), some.end(), std::back_inserter(waiting_));
    if (bytes_ >= most_waiting) print();
  }
  void end() {
    print();
    if (options_.json) write_out(is_begun_ ? "\n]\n" : "[]\n");
  }

 private:
  static constexpr std::size_t most_waiting = std::size_t{1} << 20U;  // bytes

  void print() {
    if (waiting_.empty()) return;
    write_out(options_.json ? json() : table());
    is_begun_ = true;
    waiting_.clear();
    bytes_ = 0;
  }
  std::string json() const;
  std::string table();

  const list_options& options_;
  const url server_;
  std::vector<entry> waiting_;
  std::size_t bytes_ = 0;  // that those take
  bool is_begun_ = false;
  std::size_t width_ = 1;
  std::size_t type_width_ = 6;
};

/// Returns them as they stand in an array, without its brackets.
std::string printed_list::json() const {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const entry& each : waiting_) all.push_back(to_json(each, server_));
  const std::string whole = to_document(all);
  constexpr std::string_view opening = "[\n";
  constexpr std::string_view closing = "\n]\n";
  return (is_begun_ ? ",\n" : "[\n") +
         whole.substr(opening.size(), whole.size() - opening.size() - closing.size());
}

std::string printed_list::table() {
  for (const entry& each : waiting_) {
    width_ = std::max(width_, fmt::formatted_size("{}", each.size));
    type_width_ = std::max(type_width_, ucx::to_string(each.type).size());
  }
  std::string text;
  const auto out = std::back_inserter(text);
  for (const entry& each : waiting_) {
    if (options_.names_only) {
      fmt::format_to(out, "{}\n", printable(each.name));
      continue;
    }
    fmt::format_to(out, "{}  {:{}}  {:>{}}  ", short_form(each.granted), ucx::to_string(each.type),
                   type_width_, each.size, width_);
    if (options_.full) {
      fmt::format_to(out, "{}  {}  {}\n", memory_text(each), each.generation,
                     ucx::to_string(server_.with_name(each.name)));
    } else {
      fmt::format_to(out, "{}\n", printable(each.name));
    }
  }
  return text;
}

void note(const std::string& what) { say("ucxio: note: " + printable(what) + '\n'); }

void tell_unserved(const url& directory, std::uint64_t count) {
  if (count > 0) note(unserved_text(ucx::to_string(directory), count));
}

/// Reads a directory that need not be there, or that the server may not be let read. Tells what the
/// server does not serve of it.
void read_one(client& server, const url& directory, bool guessed, const found_entry& found) {
  const auto take = [&found](std::vector<entry>&& some) {
    return std::all_of(some.begin(), some.end(), found);
  };
  try {
    tell_unserved(directory, server.visit_directory(directory.name(), take));
  } catch (const error& why) {
    const bool is_none = why.code() == errc::no_such_name || why.code() == errc::not_supported;
    if (failure(exit_code_of(why.code()), why.what()).ends_all()) throw;
    if (!guessed || !is_none) note(why.what());
  }
}

/// Tells what a server does not serve of the stores that have these directories.
void tell_unserved(client& server, const url& at, const std::set<std::string>& directories) {
  const bool is_all = visit_directories(
      directories, [&](const std::string& name, bool guessed, const found_entry& found) {
        read_one(server, name.empty() ? at : at.with_name(name), guessed, found);
      });
  if (is_all && directories.size() < most_directories) return;
  note(fmt::format("{}: what is not served is told of {} directories only", ucx::to_string(at),
                   most_directories));
}

void list_all(client& server, const url& at, const list_options& options) {
  printed_list printed(options, at);
  std::set<std::string> directories;
  server.visit([&](std::vector<entry>&& some) {
    for (const entry& each : some) {
      if (directories.size() >= most_directories || !is_harmless_path(each.name)) continue;
      add_directories_of(each.name, directories);
    }
    printed.add(std::move(some));
    return true;
  });
  printed.end();
  tell_unserved(server, at, directories);
}

void list(const list_options& options, const client_settings& settings) {
  const url from(options.url);
  client server = settings.connect(from);
  if (options.calls) {
    return list_calls(server, from,
                      options.json         ? call_list_form::json
                      : options.full       ? call_list_form::full
                      : options.names_only ? call_list_form::names
                                           : call_list_form::usual);
  }
  if (from.name().empty()) return list_all(server, from, options);
  entry described = server.stat(from.name());
  printed_list printed(options, from.server());
  std::uint64_t unserved = 0;
  if (described.type == entry_type::directory) {
    unserved = server.visit_directory(from.name(), [&](std::vector<entry>&& some) {
      printed.add(std::move(some));
      return true;
    });
  } else {
    printed.add({std::move(described)});
  }
  printed.end();
  tell_unserved(from, unserved);
}

}  // namespace

void add_list(CLI::App& program, client_settings& shared) {
  const auto options = std::make_shared<list_options>();
  CLI::App& command = *program.add_subcommand("ls", "List what a server publishes, by name");
  command
      .add_option("URL", options->url,
                  "the server, ucxs://HOST:PORT, one of its names, or a directory of a store")
      ->required();
  CLI::Option* json = command.add_flag("--json", options->json, "an array of objects");
  CLI::Option* full =
      command.add_flag("-l,--long", options->full,
                       "also the memory (host, cuda:0, ...), the generation, and the complete URL");
  command.add_flag("-1,--names", options->names_only, "names only, one a line")
      ->excludes(json)
      ->excludes(full);
  command.add_flag("--calls", options->calls,
                   "the functions that may be called (`ucxio call`), with their types; -l: also "
                   "the hash and the documentation");
  add_client_options(command, shared);
  command.footer(
      "A line tells access (r-, -w, rw), type (memory, file,\n"
      "directory), size in bytes, and name.\n\n"
      "Example:\n"
      "  ucxio ls ucxs://127.0.0.1:7471\n"
      "  ucxio ls ucxs://127.0.0.1:7471 --names | grep weights");
  command.callback([options, &shared] { list(*options, shared); });
}

}  // namespace ucx::tool
