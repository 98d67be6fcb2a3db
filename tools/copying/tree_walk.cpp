#include "copying/tree_walk.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <iterator>
#include <set>
#include <utility>

#include "copying/file_copy.hpp"
#include "copying/local_ends.hpp"
#include "copying/local_file.hpp"
#include "copying/server_directories.hpp"
#include "output/size_option.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

std::string joined(const std::string& above, std::string_view name) {
  return above.empty() ? std::string(name) : above + '/' + std::string(name);
}

}  // namespace

std::string unserved_text(const std::string& directory, std::uint64_t count) {
  return fmt::format(
      "{}: {} {} not served: symbolic links, special files, names that are no UTF-8 or too long",
      directory, count, count == 1 ? "entry is" : "entries are");
}

bool is_harmless_path(std::string_view name) noexcept {
  while (true) {
    const std::string_view part = name.substr(0, name.find('/'));
    if (part.empty() || part == "." || part == ".." || part.find('\0') != part.npos) return false;
    if (part.size() == name.size()) return true;
    name.remove_prefix(part.size() + 1);
  }
}

bool is_directory(const location& place, server_clients& clients) {
  if (!place.is_remote()) {
    std::error_code ec;
    return std::filesystem::is_directory(place.local(), ec);
  }
  if (place.remote().name().empty()) return true;
  std::error_code ec;
  const entry described = clients.of(place.remote()).stat(place.remote().name(), {}, ec);
  if (ec == errc::no_such_name) return false;
  const std::string named = ucx::to_string(place.remote());
  if (ec == errc::not_supported) throw error(ec, named + " is neither a file nor a directory");
  if (ec) throw error(ec, named);
  return described.type == entry_type::directory;
}

void add_longest_list(CLI::App& command, walk_terms& terms) {
  add_size(command, "--max-list", terms.longest_list,
           "with -r, the most memory for a server's names (default: 512M)")
      ->type_name("SIZE");
}

void tree_walk::check_stop() const {
  if (stop_.stop_requested()) throw interrupted();
}

void tree_walk::leave_out(const failure& why) {
  ++failures_;
  on_failure_(why);
}

void tree_walk::walk(const location& top) {
  if (!top.is_remote()) {
    struct ::stat about = {};
    if (::stat(top.local().c_str(), &about) != 0) fail_at(top.local(), "cannot look at it", errno);
    top_ = facts_of(about);
    std::vector<identity> above{{about.st_dev, about.st_ino}};
    walk_local(top.local(), "", above);
  } else if (top.remote().name().empty()) {
    list_server(top.remote());
  } else {
    std::error_code unknown;
    top_.modified = clients_.of(top.remote()).stat(top.remote().name(), {}, unknown).modified;
    walk_store(top.remote(), "");
  }
}

void tree_walk::walk_local(const std::filesystem::path& directory, const std::string& path,
                           std::vector<identity>& above) {
  std::error_code ec;
  std::vector<std::filesystem::path> entries;
  for (std::filesystem::directory_iterator at(directory, ec), end; !ec && at != end;
       at.increment(ec)) {
    entries.push_back(at->path());
  }
  if (ec) {
    return leave_out(failure(
        exit_code_of_errno(ec.value()),
        fmt::format("{}: cannot read the directory: {}", directory.string(), ec.message())));
  }
  std::sort(entries.begin(), entries.end());
  for (const std::filesystem::path& each : entries) {
    check_stop();
    look_at(each, joined(path, each.filename().string()), above);
  }
}

void tree_walk::look_at(const std::filesystem::path& entry, const std::string& path,
                        std::vector<identity>& above) {
  const auto refuse = [&](const char* why) {
    leave_out(failure(exit_code::failure, fmt::format("{}: {}", entry.string(), why)));
  };
  struct ::stat about = {};
  bool is_there = ::lstat(entry.c_str(), &about) == 0;
  if (is_there && S_ISLNK(about.st_mode)) {
    if (!terms_.follow_links) {
      return refuse("a symbolic link is not copied; -L copies what it leads to");
    }
    is_there = ::stat(entry.c_str(), &about) == 0;
  }
  if (!is_there) {
    if (errno == ELOOP) return refuse("symbolic links that lead in a circle");
    return leave_out(
        failure(exit_code_of_errno(errno),
                fmt::format("{}: {}", entry.string(),
                            std::error_code(errno, std::generic_category()).message())));
  }
  if (S_ISREG(about.st_mode)) {
    files_.push_back({location(entry.string()), path, static_cast<std::uint64_t>(about.st_size)});
    return;
  }
  if (!S_ISDIR(about.st_mode)) return refuse("no regular file");
  const identity here{about.st_dev, about.st_ino};
  if (std::find(above.begin(), above.end(), here) != above.end()) {
    return refuse("a symbolic link leads to a directory above itself");
  }
  directories_.push_back({path, facts_of(about)});
  above.push_back(here);
  walk_local(entry, path, above);
  above.pop_back();
}

void tree_walk::walk_store(const url& directory, const std::string& path) {
  check_stop();
  const std::string above = directory.name() + '/';
  // The one that was named is all that there is to copy.
  const std::vector<entry> entries =
      path.empty() ? read(directory) : read_or_leave_out(directory, false);
  for (const entry& each : entries) {
    const std::string name = each.name.starts_with(above) ? each.name.substr(above.size()) : "";
    if (!is_harmless_path(name) || name.find('/') != name.npos) {
      leave_out(failure(exit_code::failure,
                        fmt::format("{}: the server names \"{}\" in it, which can not be",
                                    ucx::to_string(directory), each.name)));
      continue;
    }
    const url found = directory.with_name(each.name);
    if (each.type == entry_type::directory) {
      directories_.push_back({joined(path, name), {.modified = each.modified}});
      walk_store(found, joined(path, name));
    } else {
      files_.push_back({location(found), joined(path, name), each.size});
    }
  }
}

void tree_walk::list_server(const url& server) {
  std::set<std::string> directories;
  clients_.of(server).visit([&](const std::vector<entry>& some) {
    check_stop();
    keep(server, some);
    for (const entry& each : some) {
      if (!is_harmless_path(each.name)) {
        leave_out(failure(exit_code::failure, fmt::format("{}: \"{}\" can not be a path",
                                                          ucx::to_string(server), each.name)));
        continue;
      }
      keep(server, 3 * add_directories_of(each.name, directories));  // here, in the list, as seen
      files_.push_back({location(server.with_name(each.name)), each.name, each.size});
    }
    return true;
  });
  for (const std::string& each : directories) directories_.push_back({each, {}});
  // Of what the list leaves out only the directories tell.
  const bool is_all = visit_directories(
      directories, [&](const std::string& name, bool guessed, const found_entry& found) {
        check_stop();
        const url at = name.empty() ? server : server.with_name(name);
        const std::size_t kept = kept_;
        const std::vector<entry> entries = read_or_leave_out(at, guessed);
        kept_ = kept;  // they are named in the list, and not kept again
        for (const entry& each : entries) {
          if (!found(each)) break;
        }
      });
  if (is_all) return;
  leave_out(failure(exit_code::failure,
                    fmt::format("{}: what is not served is told of {} directories only",
                                ucx::to_string(server), most_directories)));
}

/// Counts what is kept of these.
void tree_walk::keep(const url& in, const std::vector<entry>& named) {
  std::size_t size = 0;
  for (const entry& each : named) size += sizeof(found_file) + 2 * each.name.size();
  keep(in, size);
}

void tree_walk::keep(const url& in, std::size_t size) {
  kept_ += size;
  if (kept_ <= terms_.longest_list) return;
  throw failure(exit_code::failure,
                fmt::format("{}: the server names more files than {} bytes can keep, and may never "
                            "come to an end; --max-list lets it name more",
                            ucx::to_string(in), terms_.longest_list));
}

/// Reads a directory of a server, and tells what the server does not serve of it.
std::vector<entry> tree_walk::read(const url& directory) {
  std::vector<entry> all;
  const auto take = [&](std::vector<entry>&& some) {
    check_stop();
    keep(directory, some);
    std::move(some.begin(), some.end(), std::back_inserter(all));
    return true;
  };
  const std::uint64_t unserved = clients_.of(directory).visit_directory(directory.name(), take);
  if (unserved > 0) {
    failures_ += static_cast<std::size_t>(unserved);
    on_failure_(failure(exit_code::failure, unserved_text(ucx::to_string(directory), unserved)));
  }
  return all;
}

/// Says nothing of one that is `guessed` and is not there.
std::vector<entry> tree_walk::read_or_leave_out(const url& directory, bool guessed) {
  try {
    return read(directory);
  } catch (const error& why) {
    const bool is_none = why.code() == errc::no_such_name || why.code() == errc::not_supported;
    if (guessed && is_none) return {};
    const failure told(exit_code_of(why.code()), why.what());
    if (told.ends_all()) throw;
    leave_out(told);
    return {};
  }
}

}  // namespace ucx::tool
