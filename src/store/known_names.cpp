#include "store/known_names.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ucx::detail {
namespace {

bool is_before(const ordered_name& a, const ordered_name& b) noexcept { return a.key < b.key; }

run_of_names part_of(const run_of_names& all, std::vector<ordered_name>::const_iterator from) {
  const auto left = static_cast<std::size_t>(all.names.end() - from);
  const auto end = from + static_cast<std::ptrdiff_t>(std::min(left, known_names::most_told));
  return {.names = {from, end}, .more = all.more || end != all.names.end()};
}

}  // namespace

std::optional<run_of_names> known_names::next(const struct ::stat& directory,
                                              std::string_view after, bool with_slashes) const {
  if (after.empty()) return std::nullopt;
  const std::lock_guard guard(mutex_);
  for (const known& each : all_) {
    if (!each.is_of(directory, with_slashes)) continue;
    const std::vector<ordered_name>& names = each.run.names;
    // Of a directory that holds `after` there may be more.
    const std::size_t slash = with_slashes ? after.find('/') : after.npos;
    const ordered_name holder{
        .key = std::string(after.substr(0, slash == after.npos ? slash : slash + 1))};
    auto at = std::ranges::lower_bound(names, holder, is_before);
    const bool holds = slash != after.npos && at != names.end() && at->key == holder.key;
    if (!holds) {
      at = std::ranges::upper_bound(names, ordered_name{.key = std::string(after)}, is_before);
    }
    // Names in front of a run were never read, and those behind it may have to be read.
    if (after < each.after || (at == names.end() && each.run.more)) continue;
    return part_of(each.run, at);
  }
  return std::nullopt;
}

run_of_names known_names::keep(const struct ::stat& directory, std::string_view after,
                               bool with_slashes, run_of_names&& read) {
  const std::lock_guard guard(mutex_);
  // A list that begins replaces what was known of the directory.
  if (after.empty()) {
    std::erase_if(all_, [&](const known& each) { return each.is_of(directory, with_slashes); });
  }
  if (read.names.size() <= most_told) return std::move(read);
  all_.push_front({.device = directory.st_dev,
                   .inode = directory.st_ino,
                   .with_slashes = with_slashes,
                   .after = std::string(after),
                   .run = std::move(read)});
  std::size_t kept = 0;
  for (auto each = all_.begin(); each != all_.end();) {
    kept += each->run.names.size();
    each = kept > most_kept ? all_.erase(each) : std::next(each);
  }
  return part_of(all_.front().run, all_.front().run.names.begin());
}

std::size_t known_names::size() const {
  const std::lock_guard guard(mutex_);
  std::size_t sum = 0;
  for (const known& each : all_) sum += each.run.names.size();
  return sum;
}

}  // namespace ucx::detail
