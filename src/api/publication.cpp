#include "ucx/publication.hpp"

#include <utility>

#include "base/forked_child.hpp"
#include "store/published.hpp"
#include "ucx/error.hpp"

namespace ucx {

publication::publication(publication&& other) noexcept = default;

publication& publication::operator=(publication&& other) noexcept {
  publication taken(std::move(other));
  std::swap(core_, taken.core_);
  return *this;
}

publication::~publication() { close(); }

const std::string& publication::name() const noexcept {
  static const std::string none;
  return core_ ? core_->described().name : none;
}

std::uint64_t publication::size() const noexcept { return core_ ? core_->described().size : 0; }

access publication::granted() const noexcept {
  return core_ ? core_->described().granted : access::read;
}

std::span<std::byte> publication::bytes() const noexcept {
  return core_ ? core_->bytes() : std::span<std::byte>();
}

std::string publication::url() const {
  if (core_ && core_->is_inherited()) {
    throw error(errc::forked_child, "asking for the URL of what the parent publishes");
  }
  return core_ ? core_->url() : std::string();
}

bool publication::is_open() const noexcept { return core_ && core_->is_open(); }

void publication::close() noexcept {
  if (!core_ || detail::leave_to_parent(core_)) return;
  const std::shared_ptr<detail::published> kept = core_;  // a handler may destroy the publication
  kept->close();
}

}  // namespace ucx
