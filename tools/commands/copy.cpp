#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "commands/commands.hpp"
#include "copying/copy_order.hpp"
#include "copying/copy_run.hpp"
#include "copying/direct_copy.hpp"
#include "copying/server_clients.hpp"
#include "output/exit_code.hpp"
#include "output/output.hpp"
#include "output/printable.hpp"
#include "output/progress_line.hpp"
#include "output/size_option.hpp"
#include "process/interruption.hpp"

namespace ucx::tool {
namespace {

struct copy_options {
  std::vector<std::string> places;  // the last is where it goes
  copy_terms terms;
  walk_terms walk;
  bool recursive = false;
  bool direct = false;
  codec compress = codec::none;
  unsigned parallel = 8;
  std::uint64_t rate = 0;
  std::string hash;
  progress_mode progress = progress_mode::automatic;
};

/// Only a server has an agent.
void check_compressible(const copy_order& order) {
  if (order.to.is_remote() || std::ranges::any_of(order.from, &location::is_remote)) return;
  throw failure(exit_code::usage, "--compress: from path to path nothing travels");
}

copy_order order_of(const copy_options& options) {
  copy_order made{.from = {options.places.begin(), options.places.end() - 1},
                  .to = location(options.places.back()),
                  .terms = options.terms,
                  .walk = options.walk,
                  .recursive = options.recursive,
                  .parallel = options.parallel,
                  .rate = options.rate};
  made.terms.resume = options.terms.resume || options.terms.restart_changed;
  made.terms.hash = !options.hash.empty();
  made.terms.source_codec = options.compress;
  // Where the target's server fetches it has the bytes there.
  if (!options.direct) made.terms.target_codec = options.compress;
  if (options.compress != codec::none) check_compressible(made);
  return made;
}

/// One run of the command.
class copying {
 public:
  copying(const copy_options& options, const client_settings& settings)
      : options_(options),
        settings_(settings),
        order_(order_of(options)),
        clients_(settings),
        stop_([this](int) { clients_.close_all(); }),
        line_(options.progress, counters_) {}

  void run();

 private:
  template <class Copy>
  void carry_out(Copy&& copy);
  void tell(const failure& why);
  void tell_hash(const location& of, const content_digest& hash) noexcept;
  void note(const std::string& what);
  void note_times();
  void note_hollow();
  [[noreturn]] void end_interrupted(bool left_something);

  const copy_options& options_;
  const client_settings& settings_;
  const copy_order order_;
  server_clients clients_;
  interruption stop_;
  transfer_counters counters_;
  std::mutex printing_;
  std::exception_ptr unprinted_;  // why hashes are not printed any more
  progress_line line_;
};

void copying::tell(const failure& why) { line_.say("ucxio: " + printable(why.what()) + '\n'); }

void copying::note(const std::string& what) { line_.say("ucxio: note: " + what + '\n'); }

/// A copy goes on although its hashes have no reader.
void copying::tell_hash(const location& of, const content_digest& hash) noexcept {
  const std::lock_guard guard(printing_);
  if (unprinted_) return;
  try {
    line_.print(fmt::format("{}  {}\n", to_string(hash), printable(to_string(of))));
  } catch (...) {
    unprinted_ = std::current_exception();
  }
}

void copying::note_times() {
  if (!order_.terms.preserve || !order_.to.is_remote()) return;
  note("--preserve: a server keeps neither times nor modes");
}

void copying::note_hollow() {
  const std::uint64_t count = counters_.hollow;
  if (count == 0) return;
  note(fmt::format("{} empty {} not made: the server is too old", count,
                   count == 1 ? "directory was" : "directories were"));
}

void copying::end_interrupted(bool left_something) {
  line_.end(128 + stop_.signal());  // as shells report it
  const bool goes_on = left_something || (order_.terms.resume && counters_.files > 0);
  if (goes_on) {
    say("ucxio: interrupted; --resume goes on with what is there\n");
  } else if (order_.terms.resume) {
    say("ucxio: interrupted; nothing was added to what was there\n");
  } else {
    say("ucxio: interrupted; nothing is left of what was not finished\n");
  }
  stop_.end();
}

template <class Copy>
void copying::carry_out(Copy&& copy) {
  note_times();
  try {
    copy.run();
  } catch (...) {
    if (stop_.requested()) end_interrupted(copy.left_something());
    note_hollow();
    throw;
  }
  note_hollow();
  if (unprinted_) std::rethrow_exception(unprinted_);
}

void copying::run() {
  const auto report = [this](const failure& why) { tell(why); };
  const auto tell_of = [this](const location& of, const content_digest& hash) {
    tell_hash(of, hash);
  };
  try {
    if (options_.direct) {
      carry_out(direct_copy(options_.places, order_, settings_, counters_, stop_.token(), report));
    } else {
      carry_out(copy_run(order_, clients_, counters_, stop_.token(), report, tell_of));
    }
  } catch (...) {
    line_.end(static_cast<int>(exit_code_of_handled()));
    throw;
  }
  line_.end(static_cast<int>(exit_code::ok));
}

void check_threads(const copy_options& options) {
  if (options.parallel >= 1 && options.parallel <= copy_order::most_parallel) return;
  throw failure(exit_code::usage, fmt::format("--parallel: {} is not between 1 and {}",
                                              options.parallel, copy_order::most_parallel));
}

void copy(const copy_options& options, const client_settings& settings) {
  check_threads(options);
  if (options.places.size() < 2) {
    throw failure(exit_code::usage, "cp: what to copy, and where to");
  }
  if (options.direct && !options.hash.empty()) {
    throw failure(exit_code::usage,
                  "--hash: with --direct the bytes do not pass here; `ucxio hash` compares both "
                  "ends where they are");
  }
  copying(options, settings).run();
}

/// Says what is wrong with the name of a hash.
std::string complaint_about_hash(const std::string& name) {
  if (name == "xxh3") return {};
  return "\"" + name + "\" is no hash that this program computes; xxh3 is";
}

void add_terms(CLI::App& command, copy_options& options) {
  command.add_flag(
      "--resume", options.terms.resume,
      "go on where an interrupted copy has ended, once both ends have the same hashes");
  command.add_flag("--restart-changed", options.terms.restart_changed,
                   "--resume, and copy anew what was changed since, instead of failing");
  command.add_flag("--verify", options.terms.verify,
                   "check what arrives, and compare hashes of both ends when it is there");
  command
      .add_option("--hash", options.hash,
                  "print the hash of each file that was copied, as `ucxio hash TARGET` would")
      ->type_name("xxh3")
      ->check(CLI::Validator(complaint_about_hash, ""));
  command.add_flag("--sparse", options.terms.sparse, "make holes of zeros");
  add_size(command, "--max-size", options.terms.largest,
           "copy no file that is larger, whatever its server says of it")
      ->type_name("SIZE");
  add_longest_list(command, options.walk);
  command.add_flag(
      "-p,--preserve", options.terms.preserve,
      "keep the time of the last change, and between paths the mode; of directories, too");
}

}  // namespace

void add_copy(CLI::App& program, client_settings& shared) {
  const auto options = std::make_shared<copy_options>();
  const std::map<std::string, codec> codecs{{"zstd", codec::zstd}, {"lz4", codec::lz4}};
  CLI::App& command =
      *program.add_subcommand("cp", "Copy files and trees, from and to servers and paths");
  command
      .add_option("URL|PATH", options->places,
                  "what to copy, ucxs://HOST:PORT/NAME or a path, and where to")
      ->type_name("SOURCE... TARGET")
      ->required();
  command.add_flag("-r,--recursive", options->recursive, "directories, with all that is in them");
  command.add_flag("-L,--dereference", options->walk.follow_links,
                   "in trees: what symbolic links lead to");
  add_terms(command, *options);
  command.add_flag("--direct", options->direct,
                   "from server to server, straight; the target's has to be started with "
                   "--fetch-from");
  command
      .add_option("--compress", options->compress,
                  "compress on the way; servers have to be started with --agent")
      ->type_name("zstd|lz4")
      ->transform(CLI::CheckedTransformer(codecs).description(""));
  add_rate(command, options->rate);
  command.add_option("--parallel", options->parallel, "files, and pieces of 1 MiB, at a time (8)")
      ->type_name("N");
  add_progress(command, options->progress);
  add_client_options(command, shared);
  command.footer(
      "A directory, as TARGET, gets what is copied under its own name. A file shows when it is\n"
      "whole; until then it is .NAME.ucxio-part beside it. N may have a unit: 500M, 1GiB.\n"
      "Several names of one file (hard links) become files of their own.\n\n"
      "Example:\n"
      "  ucxio cp ucxs://127.0.0.1:7471/weights /data/model.bin --resume\n"
      "  ucxio cp -r checkpoints ucxs://127.0.0.1:7471/store --verify\n"
      "  ucxio cp -r ucxs://127.0.0.1:7471/store/checkpoints . --bwlimit 500M\n"
      "  ucxio cp --compress zstd ucxs://127.0.0.1:7471/store/log.txt .\n"
      "  ucxio cp --direct ucxs://127.0.0.1:7471/weights ucxs://127.0.0.1:7472/store/weights");
  command.callback([options, &shared] { copy(*options, shared); });
}

}  // namespace ucx::tool
