// A server's rules for the calls of a peer, and the lines in the audit.
#pragma once

#include <string>
#include <string_view>

#include "call/call_gate.hpp"
#include "call/call_message.hpp"
#include "ucx/endpoint.hpp"

namespace ucx::detail {

/// Of one call. Where the server has gone, nothing exists for its peers.
class peer_gate final : public call_gate {
 public:
  /// Lifetime: `caller`, until this object is gone.
  explicit peer_gate(const endpoint& caller) noexcept : caller_(caller) {}

  bool shows(std::string_view function) noexcept override;
  void names(std::string_view function) noexcept override;
  /// Tells how the call ended. Of calls by number the failures are told alone: their bindings were.
  void tell(const asked_call& asked, call_outcome outcome) noexcept;
  /// Returns the name of the function that was asked for; empty where it is none.
  std::string name_of(const asked_call& asked) const;
  /// Tells how a call of `function` ended that was answered later.
  static void tell_later(const endpoint& caller, const std::string& function, bool is_bound,
                         call_outcome outcome) noexcept;

 private:
  const endpoint& caller_;
  std::string named_;  // of a call by number
};

}  // namespace ucx::detail
