#include "engine/stream_source.hpp"

#include <string>

#include "ucx/error.hpp"
#include "ucx/memory_resources.hpp"

namespace ucx::detail {

void stream_source::require(std::ios_base::openmode wanted, std::string_view what) const {
  if (!source_) refuse(errc::closed, what);
  if (is_inherited()) refuse(errc::forked_child, what);
  if ((mode_ & wanted) != wanted) refuse(errc::permission_denied, what);
}

/// Refuses bytes that lie in two places: where the first place ends can not be told.
void stream_source::check_place(std::span<const std::byte> bytes) const {
  std::error_code misplaced;
  detail::is_copied_by_driver(bytes.data(), bytes.size(), misplaced);
  if (misplaced) refuse(misplaced, "memory of two places for");
}

void stream_source::refuse(std::error_code why, std::string_view what) const {
  throw ucx::error(why, std::string(what) + " " +
                            (source_ ? source_->description() : std::string("a closed stream")));
}

bool stream_source::regain() {
  if (!is_lost()) return false;
  gave_up_ = true;
  const bool is_back = source_->recover();
  gave_up_ = false;
  if (is_back && !is_for(std::ios_base::out)) take_size(std::max(size_, source_->size()));
  return is_back;
}

}  // namespace ucx::detail
