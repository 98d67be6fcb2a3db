#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "commands/commands.hpp"
#include "copying/copy_ends.hpp"
#include "output/entry_text.hpp"
#include "output/exit_code.hpp"
#include "output/output.hpp"
#include "output/printable.hpp"
#include "output/progress_line.hpp"
#include "process/interruption.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

struct hash_options {
  std::vector<std::string> places;
  bool chunks = false;
  bool json = false;
  progress_mode progress = progress_mode::automatic;
};

struct hashed_file {
  std::string place;
  std::uint64_t size = 0;
  content_digest whole;
  std::vector<content_digest> chunks;
};

/// Reads a file of this machine once, whatever is wanted of it.
void hash_here(copy_source& source, bool by_chunk, hashed_file& made, transfer_counters& counters) {
  std::vector<std::byte> piece(std::min<std::uint64_t>(digest_chunk, made.size));
  content_hasher whole;
  for (std::uint64_t offset = 0; offset < made.size; offset += digest_chunk) {
    const std::span<std::byte> into =
        std::span(piece).first(std::min<std::uint64_t>(piece.size(), made.size - offset));
    source.read(offset, into);
    whole.update(into);
    if (by_chunk) made.chunks.push_back(digest_of(into));
    counters.bytes += into.size();
  }
  made.whole = whole.digest();
}

/// Has the owner hash, who tells nothing before it has all of it.
void hash_there(copy_source& source, bool by_chunk, hashed_file& made,
                transfer_counters& counters) {
  made.whole = source.digests({.length = made.size, .chunk = made.size}).at(0);
  if (by_chunk) made.chunks = source.digests({.length = made.size, .chunk = digest_chunk});
  counters.bytes += made.size;
}

/// Hashes where the bytes are.
hashed_file hashed(const std::string& place, bool by_chunk, server_clients& clients,
                   transfer_counters& counters) {
  const location at(place);
  if (at.is_remote()) url_with_name(place);
  const std::unique_ptr<copy_source> source = open_source(at, {}, clients);
  hashed_file made{.place = place, .size = source->size(), .whole = digest_of({}), .chunks = {}};
  if (made.size == 0) return made;
  (at.is_remote() ? hash_there : hash_here)(*source, by_chunk, made, counters);
  source->check_unchanged();
  return made;
}

nlohmann::ordered_json json_of(const hashed_file& file, bool by_chunk) {
  nlohmann::ordered_json made{
      {"location", file.place}, {"size", file.size}, {"xxh3_128", to_string(file.whole)}};
  made["place"] = file.place;  // old, for one version
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

void hash(const hash_options& options, const client_settings& settings, transfer_counters& counters,
          progress_line& line) {
  server_clients clients(settings);
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  std::size_t failures = 0;
  counters.total_files = options.places.size();
  for (const std::string& each : options.places) {
    try {
      const hashed_file file = hashed(each, options.chunks, clients, counters);
      ++counters.files;
      if (options.json) {
        all.push_back(json_of(file, options.chunks));
      } else {
        line.print(lines(file));
      }
    } catch (const std::exception& why) {
      const auto* known = dynamic_cast<const failure*>(&why);
      if (options.places.size() == 1 || (known != nullptr && known->code() == exit_code::output)) {
        throw;
      }
      ++failures;
      line.say("ucxio: " + printable(why.what()) + '\n');
    }
  }
  if (options.json) line.print(to_document(all));
  close_output();
  if (failures == 0) return;
  throw failure(exit_code::partial,
                fmt::format("{} of {} could not be hashed", failures, options.places.size()));
}

}  // namespace

void add_hash(CLI::App& program, client_settings& shared) {
  const auto options = std::make_shared<hash_options>();
  CLI::App& command = *program.add_subcommand(
      "hash", "Hash files where they are, so that they can be compared without being copied");
  command.add_option("URL|PATH", options->places, "ucxs://HOST:PORT/NAME, or a path")->required();
  command.add_flag("--chunks", options->chunks, "also each 1 MiB by itself");
  command.add_flag("--json", options->json, "an array of objects");
  add_progress(command, options->progress);
  add_client_options(command, shared);
  command.footer(
      "The hash is XXH3-128, as xxh128sum computes it. It finds accidents, and no attacks.\n\n"
      "Example:\n"
      "  ucxio hash ucxs://127.0.0.1:7471/weights /data/model.bin");
  command.callback([options, &shared] {
    transfer_counters counters;
    run_watched(options->progress, counters, true,
                [&](progress_line& line) { hash(*options, shared, counters, line); });
  });
}

}  // namespace ucx::tool
