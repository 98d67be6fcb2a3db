#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "copy_job.hpp"
#include "exit_code.hpp"
#include "interruption.hpp"
#include "output.hpp"
#include "printable.hpp"
#include "progress_line.hpp"
#include "size_option.hpp"
#include "tree_walk.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

constexpr unsigned most_threads = 64;  // writers that a store takes

struct copy_options {
  std::vector<std::string> places;  // the last is where it goes
  copy_terms terms;
  walk_terms walk;
  bool recursive = false;
  unsigned parallel = 8;
  std::uint64_t rate = 0;
  progress_mode progress = progress_mode::automatic;
};

/// One run of the command.
class copying {
 public:
  copying(const copy_options& options, const client_settings& settings)
      : options_(options),
        clients_(settings),
        stop_([this] { clients_.close_all(); }),
        limit_(options.rate),
        line_(std::make_unique<progress_line>(options.progress, counters_)) {}

  void run();

 private:
  void add(const location& from, const location& to);
  void add_tree(const location& from, const location& to);
  void make_directory(const location& at) const;
  void leave_out(const failure& why);
  void tell(const failure& why);
  [[noreturn]] void end_interrupted(bool left_something);
  void copy_all();

  const copy_options& options_;
  server_clients clients_;
  interruption stop_;
  rate_limit limit_;
  transfer_counters counters_;
  std::unique_ptr<progress_line> line_;
  std::vector<copy_task> tasks_;
  std::size_t failures_ = 0;
  bool left_something_ = false;
};

void copying::leave_out(const failure& why) {
  if (stop_.requested() || why.code() == exit_code::interrupted) throw failure(why);
  ++failures_;
  tell(why);
}

void copying::tell(const failure& why) { line_->say("ucxio: " + printable(why.what()) + '\n'); }

void copying::end_interrupted(bool left_something) {
  line_.reset();
  say(left_something || options_.terms.resume
          ? "ucxio: interrupted; --resume goes on with what is there\n"
          : "ucxio: interrupted; nothing is left of what was not finished\n");
  stop_.end();
}

void copying::run() {
  try {
    copy_all();
  } catch (const std::exception&) {
    if (stop_.requested()) end_interrupted(left_something_);
    line_.reset();
    throw;
  }
  line_.reset();
  if (failures_ == 0) return;
  throw failure(exit_code::partial, fmt::format("{} of what was to be copied {} not", failures_,
                                                failures_ == 1 ? "was" : "were"));
}

void copying::copy_all() {
  const location to(options_.places.back());
  std::vector<location> sources;
  for (std::size_t i = 0; i + 1 < options_.places.size(); ++i) {
    sources.emplace_back(options_.places[i]);
  }
  const bool into = is_directory(to, clients_) || (to.is_remote() && to.ends_in_slash());
  if (!into && sources.size() > 1) {
    throw failure(exit_code::usage, to_string(to) + " is no directory: only one goes there");
  }
  if (!into && to.ends_in_slash() && !options_.recursive) {
    throw failure(exit_code::not_found, to_string(to) + ": there is no such directory");
  }
  std::set<std::string> leaves;
  for (const location& each : sources) {
    if (into && !leaves.insert(each.leaf()).second) {
      throw failure(exit_code::usage,
                    fmt::format("two of them would be \"{}\"", printable(each.leaf())));
    }
    try {
      add(each, into ? to.below(each.leaf()) : to);
    } catch (const failure& why) {
      if (sources.size() == 1) throw;
      leave_out(why);
    } catch (const error& why) {
      if (sources.size() == 1) throw;
      leave_out(failure(exit_code_of(why.code()), why.what()));
    }
  }
  counters_.is_total_known = true;
  const auto pieces = counters_.total_bytes / file_copy::piece_size + tasks_.size();
  const auto threads =
      static_cast<unsigned>(std::clamp<std::uint64_t>(pieces, 1, std::max(options_.parallel, 1U)));
  copy_job job({clients_, options_.terms, limit_, counters_, stop_.token()},
               [this](const failure& why) { tell(why); });
  try {
    failures_ += job.run(std::move(tasks_), threads);
  } catch (const failure&) {
    left_something_ = job.left_something();
    throw;
  }
}

void copying::add(const location& from, const location& to) {
  const bool is_tree = is_directory(from, clients_);
  if (is_tree && !options_.recursive) {
    throw failure(exit_code::usage, to_string(from) + " is a directory: -r copies it");
  }
  if (is_tree) return add_tree(from, to);
  if (!from.is_remote() && !to.is_remote()) {
    std::error_code ignored;
    if (std::filesystem::equivalent(from.local(), to.local(), ignored)) {
      throw failure(exit_code::usage, to_string(from) + " can not be copied to itself");
    }
  }
  std::error_code ec;
  if (from.is_remote()) {
    const entry described = clients_.of(from.remote()).stat(from.remote().name());
    counters_.total_bytes += described.size;
  } else {
    const auto size = std::filesystem::file_size(from.local(), ec);
    if (!ec) counters_.total_bytes += size;
  }
  ++counters_.total_files;
  tasks_.push_back({from, to});
}

void copying::add_tree(const location& from, const location& to) {
  if (!from.is_remote() && !to.is_remote()) {
    std::error_code ec;
    const auto inner = std::filesystem::weakly_canonical(to.local(), ec);
    const auto outer = std::filesystem::weakly_canonical(from.local(), ec);
    if (std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first ==
        outer.end()) {
      throw failure(exit_code::usage, to_string(from) + " can not be copied into itself");
    }
  }
  tree_walk tree(clients_, options_.walk, stop_.token(), [this](const failure& why) { tell(why); });
  tree.walk(from);
  failures_ += tree.failures();
  make_directory(to);
  std::set<std::string> missing;  // directories, with the slash behind their names
  const auto is_missing = [&missing](const std::string& path) {
    for (std::size_t end = path.find('/'); end != path.npos; end = path.find('/', end + 1)) {
      if (missing.contains(path.substr(0, end + 1))) return true;
    }
    return false;
  };
  for (const std::string& each : tree.directories()) {
    if (is_missing(each + '/')) continue;
    try {
      make_directory(to.below(each));
    } catch (const failure& why) {
      if (why.ends_all()) throw;
      missing.insert(each + '/');
      leave_out(why);
    }
  }
  for (const found_file& each : tree.files()) {
    if (is_missing(each.path)) continue;
    try {
      tasks_.push_back({each.at, to.below(each.path), each.size});
      counters_.total_bytes += each.size;
      ++counters_.total_files;
    } catch (const failure& why) {
      leave_out(why);
    }
  }
}

/// A server makes them when there is something in them.
void copying::make_directory(const location& at) const {
  if (at.is_remote()) return;
  std::error_code ec;
  std::filesystem::create_directory(at.local(), ec);
  if (!ec) return;
  throw failure(exit_code_of(ec), fmt::format("{}: cannot make the directory: {}",
                                              at.local().string(), ec.message()));
}

void check_threads(const copy_options& options) {
  if (options.parallel >= 1 && options.parallel <= most_threads) return;
  throw failure(exit_code::usage, fmt::format("--parallel: {} is not between 1 and {}",
                                              options.parallel, most_threads));
}

void copy(const copy_options& options, const client_settings& settings, bool is_limited) {
  check_threads(options);
  if (options.places.size() < 2) {
    throw failure(exit_code::usage, "cp: what to copy, and where to");
  }
  if (is_limited && options.rate == 0) {
    throw failure(exit_code::usage, "--bwlimit: at 0 bytes in a second it would never end");
  }
  copying(options, settings).run();
}

}  // namespace

void add_copy(CLI::App& program, client_settings& shared) {
  const auto options = std::make_shared<copy_options>();
  CLI::App& command =
      *program.add_subcommand("cp", "Copy files and trees, from and to servers and paths");
  command
      .add_option("PLACES", options->places,
                  "what to copy, ucx://HOST:PORT/NAME or a path, and where to")
      ->type_name("SOURCE... TARGET")
      ->required();
  command.add_flag("-r,--recursive", options->recursive, "directories, with all that is in them");
  command.add_flag("-L,--dereference", options->walk.follow_links,
                   "in trees: what symbolic links lead to");
  command.add_flag(
      "--resume", options->terms.resume,
      "go on where an interrupted copy has ended, once both ends have the same hashes");
  command.add_flag("--verify", options->terms.verify,
                   "check what arrives, and compare hashes of both ends when it is there");
  command.add_flag("--sparse", options->terms.sparse, "make holes of zeros");
  command.add_flag("-p,--preserve", options->terms.preserve,
                   "keep the time of the last change, and between paths the mode");
  CLI::Option* rate = add_size(command, "--bwlimit", options->rate, "bytes in a second at most");
  command.add_option("--parallel", options->parallel, "files, and pieces of 1 MiB, at a time (8)")
      ->type_name("N");
  add_progress(command, options->progress);
  add_timeout(command, shared);
  command.footer(
      "A directory, as TARGET, gets what is copied under its own name. A file shows when it is\n"
      "whole; until then it is .NAME.ucxio-part beside it. N may have a unit: 500M, 1GiB.\n\n"
      "Example:\n"
      "  ucxio cp ucx://127.0.0.1:7471/weights /data/model.bin --resume\n"
      "  ucxio cp -r checkpoints ucx://127.0.0.1:7471/store --verify\n"
      "  ucxio cp -r ucx://127.0.0.1:7471/store/checkpoints . --bwlimit 500M");
  command.callback([options, &shared, rate] { copy(*options, shared, rate->count() > 0); });
}

}  // namespace ucx::tool
