#include "ucx/meeting_keys.hpp"

#include <utility>

#include "base/result.hpp"
#include "carrier/meeting_book.hpp"
#include "worker/context_core.hpp"
#include "worker/core_access.hpp"

namespace ucx {
namespace {

using detail::core_access;
using detail::failure;
using detail::meeting_book;
using detail::meeting_scope;
using detail::meeting_secret;
using detail::result;

constexpr std::size_t shortest_meeting_key = 16;

result<meeting_secret> key_derived_from(std::span<const std::byte> key) {
  if (key.size() < shortest_meeting_key) {
    return failure{errc::invalid_argument, "the key of a meeting has less than 16 bytes"};
  }
  const auto made = detail::secret_of(key);
  if (!made) return failure{errc::not_supported, "OpenSSL derives nothing from a key"};
  return *made;
}

bool meets_by_tls(const context& of) {
  const auto& core = core_access::core(of);
  return core && core->tls();
}

}  // namespace

meeting_keys::meeting_keys(const context& of)
    : book_(meets_by_tls(of) ? std::make_shared<meeting_book>() : nullptr) {}

meeting_keys::meeting_keys(meeting_keys&& other) noexcept = default;

meeting_keys& meeting_keys::operator=(meeting_keys&& other) noexcept {
  const meeting_keys before(std::move(*this));
  book_ = std::move(other.book_);
  return *this;
}

meeting_keys::~meeting_keys() {
  if (book_) book_->clear();
}

void meeting_keys::expect(std::span<const std::byte> key, std::chrono::nanoseconds limit,
                          std::error_code& ec) {
  using clock = meeting_book::clock;
  result<void> outcome;
  if (book_) {
    const auto made = key_derived_from(key);
    if (!made) {
      outcome = made.why();
    } else {
      book_->expect(*made, clock::now() + std::chrono::duration_cast<clock::duration>(limit));
    }
  }
  outcome.or_end(ec);
}

listener meeting_keys::listen(const worker& parent, const socket_address& address,
                              listener_options options, std::error_code& ec) const {
  const meeting_scope given({.expects = book_});
  return listener(parent, address, std::move(options), ec);
}

endpoint meeting_keys::connect(const worker& parent, const socket_address& peer,
                               std::span<const std::byte> key, endpoint_options options,
                               std::error_code& ec) const {
  detail::meeting_part shown;
  if (book_) {
    const auto made = key_derived_from(key);
    if (!made) {
      result<void>(made.why()).or_end(ec);
      return core_access::make_endpoint(nullptr);
    }
    shown.shows = *made;
  }
  const meeting_scope given(std::move(shown));
  return endpoint(parent, peer, std::move(options), ec);
}

}  // namespace ucx
