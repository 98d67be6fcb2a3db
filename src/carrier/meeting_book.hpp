// The keys of meetings: each of two processes got one from a third, for a connection of the two.
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace ucx::detail {

/// The secret that TLS takes for a key, and the name that it shows. Both are derived.
struct meeting_secret {
  meeting_secret() = default;
  meeting_secret(const meeting_secret&) = default;
  meeting_secret& operator=(const meeting_secret&) = default;
  ~meeting_secret();  // wipes it

  std::array<std::byte, 16> identity = {};
  std::array<std::byte, 32> secret = {};
};

/// Returns nothing where OpenSSL does not derive them.
std::optional<meeting_secret> secret_of(std::span<const std::byte> key) noexcept;

/// The keys that some listeners take, and no others: in place of tokens. Each lets one connection
/// in, and counts until its deadline. Safe from any thread.
class meeting_book : public std::enable_shared_from_this<meeting_book> {
 public:
  using clock = std::chrono::steady_clock;

  /// A peer that has it is let in.
  void expect(const meeting_secret& key, clock::time_point until);
  /// Returns what a peer of this identity has to know.
  std::optional<meeting_secret> expected(std::span<const std::byte> identity) const noexcept;
  /// A peer has shown that it knows it. Returns whether it is the first.
  bool spend(std::span<const std::byte> identity) noexcept;
  /// Forgets all.
  void clear() noexcept;

 private:
  struct expectation {
    meeting_secret key;
    clock::time_point until;
  };

  mutable std::mutex mutex_;
  std::vector<expectation> expected_;
};

/// The keys of a connection by TLS that has no tokens. Where both are empty, it has tokens.
struct meeting_part {
  std::optional<meeting_secret> shows = {};         ///< Of the asking side.
  std::shared_ptr<meeting_book> expects = nullptr;  ///< Of the listening side.
};

/// Gives keys to the next listener, or connection, that this thread makes. It is there for one call
/// of the library, whose options are no place for secrets. It forgets the keys that the call did
/// not take.
class meeting_scope {
 public:
  explicit meeting_scope(meeting_part given) noexcept;
  meeting_scope(const meeting_scope&) = delete;
  meeting_scope& operator=(const meeting_scope&) = delete;
  ~meeting_scope();

  static std::shared_ptr<meeting_book> take_book() noexcept;
  static std::optional<meeting_secret> take_key() noexcept;

 private:
  meeting_part given_;
  meeting_scope* const outer_;
};

// How both go through UCX's structures, in fields that the carrier has no other use for. Lifetime:
// the call that gets the structure.

inline void give(ucp_listener_params_t& params, meeting_book& keys) noexcept {
  params.field_mask |= UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER;
  params.accept_handler.cb = nullptr;
  params.accept_handler.arg = &keys;
}

inline std::shared_ptr<meeting_book> given_in(const ucp_listener_params_t& params) {
  const bool has_keys = (params.field_mask & UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER) != 0;
  return has_keys ? static_cast<meeting_book*>(params.accept_handler.arg)->shared_from_this()
                  : nullptr;
}

inline void give(ucp_ep_params_t& params, meeting_secret& key) noexcept {
  params.field_mask |= UCP_EP_PARAM_FIELD_USER_DATA;
  params.user_data = &key;
}

inline const meeting_secret* given_in(const ucp_ep_params_t& params) noexcept {
  const bool has_key = (params.field_mask & UCP_EP_PARAM_FIELD_USER_DATA) != 0;
  return has_key ? static_cast<const meeting_secret*>(params.user_data) : nullptr;
}

}  // namespace ucx::detail
