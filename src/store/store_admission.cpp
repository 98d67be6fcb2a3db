#include "store/store_admission.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "store/store_core.hpp"
#include "store/store_region.hpp"
#include "ucx/error.hpp"
#include "worker/context_core.hpp"

namespace ucx::detail {
namespace {

/// So many writers have the whole window, however many there may be.
constexpr std::size_t most_whole_windows = 64;
constexpr std::size_t short_window = std::size_t{1} << 20U;

}  // namespace

store_options store_admission::decided(store_options options) noexcept {
  ::rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) files.rlim_cur = 0;
  constexpr ::rlim_t least = 64;
  constexpr ::rlim_t most = 65536;
  constexpr std::size_t max_writers =
      2048;  // each takes memory, however many descriptors there are
  const ::rlim_t half = std::clamp(files.rlim_cur / 2, least, most);
  if (options.max_open_files == 0) options.max_open_files = static_cast<std::size_t>(half);
  const std::size_t share = std::max<std::size_t>(options.max_open_files / 2, 1);
  if (options.max_open_files_per_client == 0) options.max_open_files_per_client = share;
  if (options.max_writers == 0) options.max_writers = std::min(share, max_writers);
  return options;
}

std::error_code store_admission::admit(const store_place& place) {
  if (!store_.is_open()) return errc::no_such_name;
  const store_options& options = store_.options();
  const std::size_t open = shares_descriptors_ ? open_of_all_->load() : open_;
  if (open >= options.max_open_files) return errc::too_many_store_files;
  if (place.is_written) {
    if (!options.writable) return errc::permission_denied;
    if (writers_ >= options.max_writers) return errc::too_many_writers;
  }
  if (!store_.names().is_path(place.path)) {
    return place.is_written ? errc::bad_name : errc::no_such_name;
  }
  if (place.is_written && !written_.insert(place.path).second) return errc::busy;
  writers_ += place.is_written ? 1U : 0U;
  ++open_;
  ++*open_of_all_;
  return {};
}

void store_admission::forget(const store_place& place) noexcept {
  --open_;
  --*open_of_all_;
  if (!place.is_written) return;
  --writers_;
  written_.erase(place.path);
}

std::error_code store_admission::check_change(const std::string& path) const {
  if (!store_.options().writable) return errc::permission_denied;
  if (!store_.names().is_path(path)) return errc::bad_name;
  return written_.contains(path) ? make_error_code(errc::busy) : std::error_code();
}

bool store_admission::is_written_below(const std::string& path) const {
  const std::string below = path + '/';
  const auto first = written_.lower_bound(below);
  return first != written_.end() && first->starts_with(below);
}

std::size_t store_admission::window() const noexcept {
  const std::size_t whole = store_.options().write_window;
  if (writers_ <= most_whole_windows) return whole;
  return std::min(whole, std::max(short_window, store_.context()->write_piece()));
}

std::uint64_t store_admission::largest_file() const noexcept {
  constexpr auto longest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return std::min(store_.options().max_file_size, longest);
}

}  // namespace ucx::detail
