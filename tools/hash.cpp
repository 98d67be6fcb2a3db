#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

#include "commands.hpp"
#include "copy_ends.hpp"
#include "entry_text.hpp"
#include "exit_code.hpp"
#include "output.hpp"
#include "printable.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

struct hash_options {
  std::vector<std::string> places;
  bool chunks = false;
  bool json = false;
};

struct hashed_file {
  std::string place;
  std::uint64_t size = 0;
  content_digest whole;
  std::vector<content_digest> chunks;
};

/// Hashes where the bytes are.
hashed_file hashed(const std::string& place, bool by_chunk, server_clients& clients) {
  const location at(place);
  if (at.is_remote()) url_with_name(place);
  const std::unique_ptr<copy_source> source = open_source(at, {}, clients);
  hashed_file made{.place = place, .size = source->size(), .whole = digest_of({}), .chunks = {}};
  if (made.size == 0) return made;
  made.whole = source->digests({.length = made.size, .chunk = made.size}).at(0);
  if (by_chunk) made.chunks = source->digests({.length = made.size, .chunk = digest_chunk});
  source->check_unchanged();
  return made;
}

nlohmann::ordered_json to_json(const hashed_file& file, bool by_chunk) {
  nlohmann::ordered_json made{
      {"place", file.place}, {"size", file.size}, {"xxh3_128", to_string(file.whole)}};
  if (!by_chunk) return made;
  made["chunk_size"] = digest_chunk;
  made["chunks"] = nlohmann::ordered_json::array();
  for (const content_digest& each : file.chunks) made["chunks"].push_back(to_string(each));
  return made;
}

std::string lines(const hashed_file& file) {
  std::string text;
  for (std::size_t i = 0; i < file.chunks.size(); ++i) {
    text += fmt::format("{}  {}@{}\n", to_string(file.chunks[i]), printable(file.place),
                        i * digest_chunk);
  }
  return text + fmt::format("{}  {}\n", to_string(file.whole), printable(file.place));
}

void hash(const hash_options& options, const client_settings& settings) {
  server_clients clients(settings);
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  std::size_t failures = 0;
  for (const std::string& each : options.places) {
    try {
      const hashed_file file = hashed(each, options.chunks, clients);
      if (options.json) {
        all.push_back(to_json(file, options.chunks));
      } else {
        write_out(lines(file));
      }
    } catch (const std::exception& why) {
      const auto* known = dynamic_cast<const failure*>(&why);
      if (options.places.size() == 1 || (known != nullptr && known->code() == exit_code::output)) {
        throw;
      }
      ++failures;
      say("ucxio: " + printable(why.what()) + '\n');
    }
  }
  if (options.json) write_out(to_document(all));
  if (failures == 0) return;
  throw failure(exit_code::partial,
                fmt::format("{} of {} could not be hashed", failures, options.places.size()));
}

}  // namespace

void add_hash(CLI::App& program, client_settings& shared) {
  const auto options = std::make_shared<hash_options>();
  CLI::App& command = *program.add_subcommand(
      "hash", "Hash files where they are, so that they can be compared without being copied");
  command.add_option("PLACE", options->places, "ucx://HOST:PORT/NAME, or a path")->required();
  command.add_flag("--chunks", options->chunks, "also each 1 MiB by itself");
  command.add_flag("--json", options->json, "an array of objects");
  add_timeout(command, shared);
  command.footer(
      "The hash is XXH3-128, as xxh128sum computes it. It finds accidents, and no attacks.\n\n"
      "Example:\n"
      "  ucxio hash ucx://127.0.0.1:7471/weights /data/model.bin");
  command.callback([options, &shared] { hash(*options, shared); });
}

}  // namespace ucx::tool
