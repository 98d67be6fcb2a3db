// Control messages over UCX: a frame carries each.
#pragma once

#include <optional>

#include "connection/channel.hpp"

namespace ucx::detail {

struct control_header;

/// Returns whether it has no answer, so that it can not be refused.
bool has_no_answer(const control_header& said) noexcept;

/// REQUIRES: the endpoint outlives it, or ended() has been called.
class endpoint_channel final : public channel {
 public:
  explicit endpoint_channel(endpoint_core& endpoint) noexcept : endpoint_(endpoint) {}

  void send(std::span<const std::byte> message) override;
  std::size_t longest() const noexcept override;
  std::size_t unsent() const noexcept override;
  void take_turn(move_only_handler<> work) override;
  void blame(std::error_code why, const std::string& words) override;
  peer_reach reach() const noexcept override;
  peer_facts facts() const override;
  clock::time_point now() const noexcept override;
  void grant(std::uint64_t region, access rights) override;
  void pass_file(std::uint64_t region, access rights) override;
  void end_grant(std::uint64_t region) noexcept override;
  void end_grants() noexcept override;
  void revoke_grant(std::uint64_t region) noexcept override;
  /// Answers `busy` to a question that was not heard: a well-behaved peer says it again. Returns
  /// false where that has no answer, or the peer takes none.
  bool refuse(const control_header& said);

 private:
  bool shares_host() const noexcept;

  endpoint_core& endpoint_;
  mutable std::optional<bool> shares_host_;  // found out at the first question
};

}  // namespace ucx::detail
