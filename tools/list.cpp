#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "entry_text.hpp"
#include "output.hpp"
#include "printable.hpp"
#include "tree_walk.hpp"
#include "ucx/directory_listing.hpp"

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

void list(const list_options& options, const client_settings& settings) {
  const url from(options.url);
  client server = settings.connect(from);
  std::vector<entry> found;
  if (from.name().empty()) {
    found = server.list();
  } else {
    found.push_back(server.stat(from.name()));
    if (found.front().type == entry_type::directory) {
      directory_listing listed = read_directory(server, from.name());
      found = std::move(listed.entries);
      if (listed.unserved > 0) {
        say("ucxio: note: " + unserved_text(ucx::to_string(from), listed.unserved) + '\n');
      }
    }
  }
  std::sort(found.begin(), found.end(),
            [](const entry& a, const entry& b) { return a.name < b.name; });
  if (!options.json) return write_out(table(found, options, from.server()));
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const entry& each : found) all.push_back(to_json(each, from.server()));
  write_out(to_document(all));
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
