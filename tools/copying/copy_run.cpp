#include "copying/copy_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "agent/agent_links.hpp"
#include "copying/local_ends.hpp"
#include "output/exit_code.hpp"
#include "output/printable.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {

copy_run::copy_run(const copy_order& order, server_clients& clients, transfer_counters& counters,
                   std::stop_token stop, report tell, hash_report tell_hash)
    : order_(order),
      clients_(clients),
      counters_(counters),
      stop_(std::move(stop)),
      tell_(std::move(tell)),
      tell_hash_(std::move(tell_hash)),
      limit_(order.rate) {}

void copy_run::run() {
  call_agents();
  find();
  copy_found();
  preserve_directories();
  if (failures_ == 0) return;
  throw failure(exit_code::partial, fmt::format("{} of what was to be copied {} not", failures_,
                                                failures_ == 1 ? "was" : "were"));
}

void copy_run::leave_out(const failure& why) {
  if (stop_.stop_requested() || why.code() == exit_code::interrupted) throw failure(why);
  ++failures_;
  tell_(why);
}

/// One that is missing is told once, and not for every file.
void copy_run::call_agents() {
  const auto call = [this](const location& place, codec by) {
    if (place.is_remote() && by != codec::none) clients_.agents().of(place.remote());
  };
  for (const location& each : order_.from) call(each, order_.terms.source_codec);
  call(order_.to, order_.terms.target_codec);
}

void copy_run::find() {
  const location& to = order_.to;
  const bool into = is_directory(to, clients_) || (to.is_remote() && to.ends_in_slash());
  if (!into && order_.from.size() > 1) {
    throw failure(exit_code::usage, to_string(to) + " is no directory: only one goes there");
  }
  if (!into && to.ends_in_slash() && !order_.recursive) {
    throw failure(exit_code::not_found, to_string(to) + ": there is no such directory");
  }
  std::set<std::string> leaves;
  for (const location& each : order_.from) {
    if (into && !leaves.insert(each.leaf()).second) {
      throw failure(exit_code::usage,
                    fmt::format("two of them would be \"{}\"", printable(each.leaf())));
    }
    try {
      add(each, into ? to.below(each.leaf()) : to);
    } catch (const failure& why) {
      if (order_.from.size() == 1) throw;
      leave_out(why);
    } catch (const error& why) {
      if (order_.from.size() == 1) throw;
      leave_out(failure(exit_code_of(why.code()), why.what()));
    }
  }
  counters_.is_total_known = true;
}

void copy_run::copy_found() {
  const auto pieces = counters_.total_bytes / file_copy::piece_size + tasks_.size();
  const auto threads =
      static_cast<unsigned>(std::clamp<std::uint64_t>(pieces, 1, std::max(order_.parallel, 1U)));
  copy_job job({clients_, order_.terms, limit_, counters_, left_something_, tell_hash_, stop_},
               tell_);
  failures_ += job.run(std::move(tasks_), threads);
}

void copy_run::add(const location& from, const location& to) {
  const bool is_tree = is_directory(from, clients_);
  if (is_tree && !order_.recursive) {
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
  std::uint64_t size = 0;
  if (from.is_remote()) {
    size = clients_.of(from.remote()).stat(from.remote().name()).size;
  } else {
    size = std::filesystem::file_size(from.local(), ec);
    if (ec) size = 0;
  }
  counters_.total_bytes += size;
  ++counters_.total_files;
  tasks_.push_back({from, to, size});
}

void copy_run::add_tree(const location& from, const location& to) {
  if (!from.is_remote() && !to.is_remote()) {
    std::error_code ec;
    const auto inner = std::filesystem::weakly_canonical(to.local(), ec);
    const auto outer = std::filesystem::weakly_canonical(from.local(), ec);
    if (std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first ==
        outer.end()) {
      throw failure(exit_code::usage, to_string(from) + " can not be copied into itself");
    }
  }
  tree_walk tree(clients_, order_.walk, stop_, tell_);
  tree.walk(from);
  failures_ += tree.failures();
  const bool is_new = !exists(to);
  make_directory(to);
  add_directories(tree, to);
  if (to.is_remote()) make_hollow(tree, to, is_new);
  for (const found_file& each : tree.files()) {
    if (is_missing(each.path)) continue;
    try {
      tasks_.push_back({each.at, to.below(each.path), each.size, is_new});
      counters_.total_bytes += each.size;
      ++counters_.total_files;
    } catch (const failure& why) {
      leave_out(why);
    }
  }
}

void copy_run::add_directories(const tree_walk& tree, const location& to) {
  missing_.clear();
  const bool are_kept = order_.terms.preserve && !to.is_remote();
  if (are_kept) kept_.emplace_back(to.local(), tree.top());
  for (const found_directory& each : tree.directories()) {
    if (is_missing(each.path + '/')) continue;
    try {
      make_directory(to.below(each.path));
      if (are_kept) kept_.emplace_back(to.below(each.path).local(), each.facts);
    } catch (const failure& why) {
      if (why.ends_all()) throw;
      missing_.insert(each.path + '/');
      leave_out(why);
    }
  }
}

/// When nothing comes into them any more; first those that lie in others.
void copy_run::preserve_directories() {
  for (auto each = kept_.rbegin(); each != kept_.rend(); ++each) {
    try {
      preserve(each->first, each->second);
    } catch (const failure& why) {
      leave_out(why);
    }
  }
}

/// A server makes those by itself that something goes into.
void copy_run::make_hollow(const tree_walk& tree, const location& to, bool is_new) {
  if (is_new && tree.files().empty()) make_remote_directory(to);
  std::set<std::string_view> with_files;
  for (const found_file& each : tree.files()) {
    std::string_view above = each.path;
    for (std::size_t slash = above.rfind('/'); slash != above.npos; slash = above.rfind('/')) {
      above = above.substr(0, slash);
      if (!with_files.insert(above).second) break;
    }
  }
  for (const found_directory& each : tree.directories()) {
    if (!with_files.contains(each.path)) make_remote_directory(to.below(each.path));
  }
}

void copy_run::make_remote_directory(const location& at) {
  std::error_code ec;
  clients_.of(at.remote()).make_directory(at.remote().name(), {}, ec);
  if (!ec || ec == errc::already_exists) return;
  if (ec == errc::not_supported) {
    ++counters_.hollow;
    return;
  }
  leave_out(failure(exit_code_of(ec),
                    fmt::format("{}: cannot make the directory: {}", to_string(at), ec.message())));
}

/// Returns whether it is within a directory that could not be made.
bool copy_run::is_missing(const std::string& path) const {
  for (std::size_t end = path.find('/'); end != path.npos; end = path.find('/', end + 1)) {
    if (missing_.contains(path.substr(0, end + 1))) return true;
  }
  return false;
}

bool copy_run::exists(const location& place) const {
  std::error_code ec;
  if (!place.is_remote()) {
    return std::filesystem::symlink_status(place.local(), ec).type() !=
           std::filesystem::file_type::not_found;
  }
  if (place.remote().name().empty()) return true;
  clients_.of(place.remote()).stat(place.remote().name(), {}, ec);
  return ec != errc::no_such_name;
}

/// See make_hollow.
void copy_run::make_directory(const location& at) const {
  if (at.is_remote()) return;
  std::error_code ec;
  std::filesystem::create_directory(at.local(), ec);
  if (!ec) return;
  throw failure(exit_code_of(ec), fmt::format("{}: cannot make the directory: {}",
                                              at.local().string(), ec.message()));
}

}  // namespace ucx::tool
