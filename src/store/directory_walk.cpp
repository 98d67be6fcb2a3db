#include "store/directory_walk.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/name.hpp"
#include "base/owned_descriptor.hpp"
#include "base/store_path.hpp"
#include "store/store_directory.hpp"

namespace ucx::detail {
namespace {

constexpr std::size_t deepest_directory = 128;
constexpr const char* behind_all = "\xff";  // what is no UTF-8 is not told

struct closes_directory {
  void operator()(DIR* opened) const noexcept { ::closedir(opened); }
};

/// Returns whether a failed call is about one name alone: it is gone, or is nothing for us.
bool concerns_one_name(int number) noexcept {
  return number == ENOENT || number == ENOTDIR || number == ELOOP || number == EACCES ||
         number == EPERM;
}

/// Returns whether a failed call is about what one name leads to. That includes a file that a
/// server of files has dropped, and a file system whose process is gone. It also includes a file
/// that is longer than this system can say.
bool concerns_what_is_named(int number) noexcept {
  return concerns_one_name(number) || number == ESTALE || number == ENOTCONN || number == EOVERFLOW;
}

/// Calls `take(name)` for each name in the directory, in whatever order the system has them;
/// returns why these are not all.
template <class Take>
std::error_code each_name(int directory, Take&& take) {
  owned_descriptor own(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!own) return concerns_one_name(errno) ? std::error_code() : store_error(errno);
  const std::unique_ptr<DIR, closes_directory> opened(::fdopendir(own.get()));
  if (!opened) return store_error(errno);
  own.release();
  for (;;) {
    errno = 0;
    const dirent* const each = ::readdir(opened.get());
    // One that was removed meanwhile has no more names.
    if (each == nullptr) {
      return errno == 0 || errno == ENOENT ? std::error_code() : store_error(errno);
    }
    const std::string_view name(each->d_name);
    if (name != "." && name != ".." && name != spool_name) take(name, each->d_type);
  }
}

/// Returns the first of those that `after` does not rule out, in order.
result<run_of_names> read_names(int directory, std::string_view after, bool with_slashes) {
  constexpr std::size_t most_names = known_names::most_read;
  run_of_names made;
  std::vector<ordered_name>& kept = made.names;  // a heap, the last one first
  bool& more = made.more;
  const auto before = [](const ordered_name& a, const ordered_name& b) { return a.key < b.key; };
  const std::error_code ec = each_name(directory, [&](std::string_view name, unsigned char type) {
    bool is_directory = type == DT_DIR;
    struct ::stat about = {};
    std::string key(name);
    if (type == DT_UNKNOWN && ::fstatat(directory, key.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0) {
      is_directory = S_ISDIR(about.st_mode);
    }
    if (is_directory && with_slashes) key += '/';
    // Of a directory that holds `after` there may be more.
    const bool holds_after = is_directory && with_slashes && after.starts_with(key);
    if (key <= after && !holds_after) return;
    if (kept.size() == most_names && kept.front().key <= key) {
      more = true;
      return;
    }
    kept.push_back({std::move(key), is_directory});
    std::push_heap(kept.begin(), kept.end(), before);
    if (kept.size() <= most_names) return;
    more = true;
    std::pop_heap(kept.begin(), kept.end(), before);
    kept.pop_back();
  });
  if (ec) return failure{ec};
  std::sort_heap(kept.begin(), kept.end(), before);
  return made;
}

/// Returns the next of them.
result<run_of_names> next_names(int directory, std::string_view after, bool with_slashes,
                                known_names& known) {
  struct ::stat about = {};
  if (::fstat(directory, &about) != 0) return failure{store_error(errno)};
  if (auto told = known.next(about, after, with_slashes)) return std::move(*told);
  result<run_of_names> read = read_names(directory, after, with_slashes);
  if (!read) return read;
  return known.keep(about, after, with_slashes, *std::move(read));
}

/// Describes what a name is; returns whether it is anything still.
result<bool> look_at(int directory, const std::string& name, struct ::stat& about) {
  if (::fstatat(directory, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (!concerns_what_is_named(errno)) return failure{store_error(errno)};
  return false;
}

/// Walks what is below `directory`, whose own path is `prefix`; returns whether to go on.
result<bool> walk(int directory, const std::string& prefix, std::string after, std::size_t depth,
                  known_names& known, const found_entry& visit) {
  for (bool more = true; more;) {
    const result<run_of_names> run = next_names(directory, after, true, known);
    if (!run) return run.why();
    const std::vector<ordered_name>& names = run->names;
    more = run->more;
    for (const ordered_name& each : names) {
      if (!each.is_directory) {
        struct ::stat about = {};
        const result<bool> is_there = look_at(directory, each.key, about);
        if (!is_there) return is_there.why();
        if (!*is_there || S_ISDIR(about.st_mode)) continue;  // it has just become one
        if (!visit(prefix + each.key, about)) return false;
        continue;
      }
      if (depth == deepest_directory || prefix.size() + each.key.size() >= longest_name) continue;
      std::string rest = after.starts_with(each.key) ? after.substr(each.key.size()) : "";
      if (rest == behind_all) continue;
      const std::string name = each.key.substr(0, each.key.size() - 1);
      const owned_descriptor inner(::openat(
          directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
      if (!inner && !concerns_what_is_named(errno)) return failure{store_error(errno)};
      if (!inner) continue;
      const result<bool> goes_on =
          walk(inner.get(), prefix + each.key, std::move(rest), depth + 1, known, visit);
      if (!goes_on || !*goes_on) return goes_on;
    }
    // Everything below the last directory was seen: no path in it is behind this.
    if (more) after = names.back().key + (names.back().is_directory ? behind_all : "");
  }
  return true;
}

}  // namespace

std::error_code walk_directory(int directory, std::string_view after, known_names& known,
                               const found_entry& visit) {
  std::string behind(after);
  for (bool more = true; more;) {
    const result<run_of_names> run = next_names(directory, behind, false, known);
    if (!run) return run.why().code;
    const std::vector<ordered_name>& names = run->names;
    more = run->more;
    for (const ordered_name& each : names) {
      struct ::stat about = {};
      const result<bool> is_there = look_at(directory, each.key, about);
      if (!is_there) return is_there.why().code;
      if (*is_there && !visit(each.key, about)) return {};
    }
    if (more) behind = names.back().key;
  }
  return {};
}

std::error_code walk_tree(int top, std::string_view after, known_names& known,
                          const found_entry& visit) {
  const result<bool> walked = walk(top, std::string(), std::string(after), 0, known, visit);
  return walked ? std::error_code() : walked.why().code;
}

std::error_code each_type(
    int directory, const std::function<void(const std::string& name, ::mode_t type)>& visit) {
  return each_name(directory, [&](std::string_view found, unsigned char type) {
    const std::string name(found);
    if (type != DT_UNKNOWN) return visit(name, static_cast<::mode_t>(DTTOIF(type)));
    struct ::stat about = {};
    const bool is_there = ::fstatat(directory, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there || errno != ENOENT) visit(name, is_there ? about.st_mode & S_IFMT : 0);
  });
}

result<std::vector<std::string>> names_in(int directory) {
  std::vector<std::string> found;
  const std::error_code ec =
      each_name(directory, [&](std::string_view name, unsigned char) { found.emplace_back(name); });
  if (ec) return failure{ec};
  return found;
}

}  // namespace ucx::detail
