// Control messages over UCX: a frame carries each.
#pragma once

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
  void blame(std::error_code why, const std::string& words) override;
  /// Answers `busy` to a question that was not heard: a well-behaved peer says it again. Returns
  /// false where that has no answer, or the peer takes none.
  bool refuse(const control_header& said);

 private:
  endpoint_core& endpoint_;
};

}  // namespace ucx::detail
