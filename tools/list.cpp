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

#include "commands.hpp"
#include "entry_text.hpp"
#include "output.hpp"
#include "printable.hpp"
#include "server_directories.hpp"
#include "tree_walk.hpp"
#include "ucx/directory_listing.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

struct list_options {
  std::string url;
  bool json = false;
  bool full = false;
  bool names_only = false;
};

std::string table(const std::vector<entry>& found, const list_options& options, const url& server) {
  std::size_t width = 1;
  std::size_t type_width = 6;
  for (const entry& each : found) width = std::max(width, fmt::formatted_size("{}", each.size));
  for (const entry& each : found) {
    type_width = std::max(type_width, ucx::to_string(each.type).size());
  }
  std::string text;
  const auto out = std::back_inserter(text);
  for (const entry& each : found) {
    if (options.names_only) {
      fmt::format_to(out, "{}\n", printable(each.name));
      continue;
    }
    fmt::format_to(out, "{}  {:{}}  {:>{}}  ", short_form(each.granted), ucx::to_string(each.type),
                   type_width, each.size, width);
    if (options.full) {
      fmt::format_to(out, "{}  {}  {}\n", memory_text(each), each.generation,
                     ucx::to_string(server.with_name(each.name)));
    } else {
      fmt::format_to(out, "{}\n", printable(each.name));
    }
  }
  return text;
}

void note(const std::string& what) { say("ucxio: note: " + printable(what) + '\n'); }

/// Returns what lies in a directory, and tells what the server does not serve of it.
std::vector<entry> read(client& server, const url& directory) {
  directory_listing listed = read_directory(server, directory.name());
  if (listed.unserved > 0) note(unserved_text(ucx::to_string(directory), listed.unserved));
  return std::move(listed.entries);
}

/// The same of a directory that need not be there, or that the server may not be let read.
std::vector<entry> read_if_possible(client& server, const url& directory, bool guessed) {
  try {
    return read(server, directory);
  } catch (const error& why) {
    const bool is_none = why.code() == errc::no_such_name || why.code() == errc::not_supported;
    if (failure(exit_code_of(why.code()), why.what()).ends_all()) throw;
    if (!guessed || !is_none) note(why.what());
    return {};
  }
}

/// Tells what a server does not serve of its stores, whose files it lists as `found`.
void tell_unserved(client& server, const url& at, const std::vector<entry>& found) {
  std::set<std::string> directories;
  for (const entry& each : found) {
    if (is_harmless_path(each.name)) add_directories_of(each.name, directories);
  }
  visit_directories(directories, [&](const std::string& name, bool guessed) {
    return read_if_possible(server, name.empty() ? at : at.with_name(name), guessed);
  });
}

void write(std::vector<entry> found, const list_options& options, const url& server) {
  std::sort(found.begin(), found.end(),
            [](const entry& a, const entry& b) { return a.name < b.name; });
  if (!options.json) return write_out(table(found, options, server));
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const entry& each : found) all.push_back(to_json(each, server));
  write_out(to_document(all));
}

void list(const list_options& options, const client_settings& settings) {
  const url from(options.url);
  client server = settings.connect(from);
  if (from.name().empty()) {
    const std::vector<entry> found = server.list();
    write(found, options, from);
    return tell_unserved(server, from, found);
  }
  const entry described = server.stat(from.name());
  const bool is_directory = described.type == entry_type::directory;
  write(is_directory ? read(server, from) : std::vector{described}, options, from.server());
}

}  // namespace

void add_list(CLI::App& program, client_settings& shared) {
  const auto options = std::make_shared<list_options>();
  CLI::App& command = *program.add_subcommand("ls", "List what a server publishes, by name");
  command
      .add_option("URL", options->url,
                  "the server, ucx://HOST:PORT, one of its names, or a directory of a store")
      ->required();
  CLI::Option* json = command.add_flag("--json", options->json, "an array of objects");
  CLI::Option* full =
      command.add_flag("-l,--long", options->full,
                       "also the memory (host, cuda:0, ...), the generation, and the complete URL");
  command.add_flag("-1,--names", options->names_only, "names only, one a line")
      ->excludes(json)
      ->excludes(full);
  add_timeout(command, shared);
  command.footer(
      "A line tells access (r-, -w, rw), type (memory, file,\n"
      "directory), size in bytes, and name.\n\n"
      "Example:\n"
      "  ucxio ls ucx://127.0.0.1:7471\n"
      "  ucxio ls ucx://127.0.0.1:7471 --names | grep weights");
  command.callback([options, &shared] { list(*options, shared); });
}

}  // namespace ucx::tool
