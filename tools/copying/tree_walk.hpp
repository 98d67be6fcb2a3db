// The files of directories, here and on servers.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "copying/copy_ends.hpp"
#include "copying/location.hpp"
#include "copying/server_clients.hpp"
#include "output/cli_forward.hpp"
#include "output/exit_code.hpp"

namespace ucx::tool {

/// A file that was found.
struct found_file {
  location at;
  std::string path;  ///< Within the directory where the walk began, with slashes; else empty.
  std::uint64_t size = 0;
};

/// A directory that was found, and what is known of it.
struct found_directory {
  std::string path;  ///< As of a file.
  source_facts facts;
};

struct walk_terms {
  bool follow_links = false;  ///< In trees of this machine; loops are told.
  /// So many bytes are kept of what servers name: they need not come to an end.
  std::uint64_t longest_list = std::uint64_t{512} << 20U;
};

/// Finds the files of a directory and of those below it. Entries that can not be looked at are
/// told, and left out.
class tree_walk {
 public:
  using report = std::function<void(const failure&)>;

  tree_walk(server_clients& clients, const walk_terms& terms, std::stop_token stop,
            report on_failure)
      : clients_(clients),
        terms_(terms),
        stop_(std::move(stop)),
        on_failure_(std::move(on_failure)) {}

  /// Walks through the directory `top`. Errors: failure, where it can not be looked at itself, or
  /// its server names more than `longest_list`; those of the connection.
  void walk(const location& top);

  const std::vector<found_file>& files() const noexcept { return files_; }
  /// Returns the directories, each behind the one above it; without the first. Of servers' those
  /// that have files.
  const std::vector<found_directory>& directories() const noexcept { return directories_; }
  /// Returns what is known of the first.
  const source_facts& top() const noexcept { return top_; }
  /// Returns how many files, or whole directories, were left out.
  std::size_t failures() const noexcept { return failures_; }

 private:
  using identity = std::pair<::dev_t, ::ino_t>;

  void walk_local(const std::filesystem::path& directory, const std::string& path,
                  std::vector<identity>& above);
  void look_at(const std::filesystem::path& entry, const std::string& path,
               std::vector<identity>& above);
  void walk_store(const url& directory, const std::string& path);
  void list_server(const url& server);
  void keep(const url& in, const std::vector<entry>& named);
  void keep(const url& in, std::size_t size);
  std::vector<entry> read(const url& directory);
  std::vector<entry> read_or_leave_out(const url& directory, bool guessed);
  void leave_out(const failure& why);
  void check_stop() const;

  server_clients& clients_;
  const walk_terms terms_;
  const std::stop_token stop_;
  report on_failure_;
  std::vector<found_file> files_;
  std::vector<found_directory> directories_;
  source_facts top_;
  std::size_t failures_ = 0;
  std::uint64_t kept_ = 0;  // bytes, of what servers named
};

/// Adds `--max-list`.
void add_longest_list(CLI::App& command, walk_terms& terms);

/// Returns whether it is there, and a directory: of a server one of a store, or the server itself.
/// Errors: those of the connection.
bool is_directory(const location& place, server_clients& clients);

/// Says that a server's lists of a directory leave out `count` names.
std::string unserved_text(const std::string& directory, std::uint64_t count);

/// Returns whether a name of a server's may become a path below a directory: relative, and without
/// parts that lead elsewhere.
bool is_harmless_path(std::string_view name) noexcept;

}  // namespace ucx::tool
