// A copy from its order to its end: what it finds, and what becomes of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "copying/copy_job.hpp"
#include "copying/copy_order.hpp"
#include "copying/rate_limit.hpp"
#include "copying/server_clients.hpp"
#include "output/transfer_counters.hpp"

namespace ucx::tool {

/// Runs once. Lifetime: what is referred to, until it is gone.
class copy_run {
 public:
  /// Is told of what was left out, by any thread, one at a time.
  using report = std::function<void(const failure&)>;

  /// `tell_hash` is called where the order's terms want it.
  copy_run(const copy_order& order, server_clients& clients, transfer_counters& counters,
           std::stop_token stop, report tell, hash_report tell_hash = {});

  /// Returns when everything was copied. Errors: failure with exit_code::partial, where something
  /// was left out; what ended it.
  void run();
  /// Returns whether something is left that may be resumed.
  bool left_something() const noexcept { return left_something_; }

 private:
  void call_agents();
  void find();
  void add(const location& from, const location& to);
  void add_tree(const location& from, const location& to);
  void add_directories(const tree_walk& tree, const location& to);
  void preserve_directories();
  void make_hollow(const tree_walk& tree, const location& to, bool is_new);
  void make_remote_directory(const location& at);
  bool is_missing(const std::string& path) const;
  bool exists(const location& place) const;
  void make_directory(const location& at) const;
  void leave_out(const failure& why);
  void copy_found();

  const copy_order& order_;
  server_clients& clients_;
  transfer_counters& counters_;
  const std::stop_token stop_;
  report tell_;
  hash_report tell_hash_;
  rate_limit limit_;
  std::vector<copy_task> tasks_;
  std::set<std::string> missing_;  // directories of one tree, with the slash behind their names
  std::vector<std::pair<std::filesystem::path, source_facts>> kept_;  // of directories here
  std::size_t failures_ = 0;
  std::atomic<bool> left_something_ = false;
};

}  // namespace ucx::tool
