#include "store/store_listing.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/store_path.hpp"
#include "store/directory_walk.hpp"
#include "store/store_directory.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

result<store_listing::page> store_listing::list_files(std::string_view after, std::size_t most,
                                                      std::size_t longest) const {
  const owned_descriptor top = directory_.open_beneath("", to_read_names);
  if (!top) return failure{store_error(errno)};
  page made;
  const auto take = [&](const std::string& path, const struct ::stat& about) {
    if (!S_ISREG(about.st_mode) || path.size() > longest || !complaint_about_path(path).empty()) {
      return true;
    }
    made.more = made.items.size() == most;
    if (!made.more) made.items.push_back({path, facts_from(about)});
    return !made.more;
  };
  const std::error_code ec = walk_tree(top.get(), after, known_, take);
  if (ec) return failure{ec};
  if (made.items.empty() && directory_.is_gone()) return failure{errc::stale_store};
  return made;
}

result<store_listing::page> store_listing::list_directory(const std::string& directory,
                                                          std::string_view after, std::size_t most,
                                                          std::size_t longest) const {
  const result<file_facts> listed = directory_.stat(directory);
  if (!listed) return listed.why();
  if (!listed->is_directory) return failure{errc::not_supported};
  const owned_descriptor top = directory_.open_beneath(directory, to_read_names);
  // Of one that may be read and not searched, the names are all that there is.
  if (!top || is_refused(top.get(), X_OK)) return failure{store_error(errno)};
  const auto serves = [&](const std::string& name, ::mode_t mode) {
    const std::string path = directory.empty() ? name : directory + '/' + name;
    return is_served(mode) && path.size() <= longest && complaint_about_path(path).empty();
  };
  page made;
  const auto count = [&](const std::string& name, ::mode_t mode) {
    if (!serves(name, mode)) ++made.unserved;
  };
  std::error_code ec;
  if (after.empty()) ec = each_type(top.get(), count);
  if (ec) return failure{ec};
  const auto take = [&](const std::string& name, const struct ::stat& about) {
    if (!serves(name, about.st_mode)) return true;
    made.more = made.items.size() == most;
    if (!made.more) made.items.push_back({name, facts_from(about)});
    return !made.more;
  };
  ec = walk_directory(top.get(), after, known_, take);
  if (ec) return failure{ec};
  if (made.items.empty() && directory_.is_gone()) return failure{errc::stale_store};
  return made;
}

result<std::uint64_t> store_listing::total_size() const {
  const owned_descriptor top = directory_.open_beneath("", to_read_names);
  if (!top) return failure{store_error(errno)};
  std::uint64_t sum = 0;
  const auto add = [&](const std::string&, const struct ::stat& about) {
    if (S_ISREG(about.st_mode)) sum += static_cast<std::uint64_t>(about.st_size);
    return true;
  };
  known_names known;  // once, it is of no use to those who list
  if (const std::error_code ec = walk_tree(top.get(), {}, known, add)) return failure{ec};
  return sum;
}

}  // namespace ucx::detail
