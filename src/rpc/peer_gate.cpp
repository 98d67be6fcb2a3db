#include "rpc/peer_gate.hpp"

#include <new>

#include "call/call_listing.hpp"
#include "ucx/access_rules.hpp"
#include "ucx/audit.hpp"

namespace ucx::detail {

bool peer_gate::shows(std::string_view function) noexcept {
  if (caller_.is_allowed(access_right::call, function)) return true;
  try {
    hidden_ = function;
  } catch (const std::bad_alloc&) {  // its line has no name
  }
  return false;
}

void peer_gate::tell(const asked_call& asked, call_outcome outcome) noexcept {
  const bool is_done = outcome == call_outcome::done;
  const bool is_bound = asked.kind == call_kind::bound;
  if (is_done && (is_bound || asked.name == listing_name)) return;
  if (is_bound && hidden_.empty()) return;
  try {
    const std::error_code ended = is_done ? std::error_code() : code_at_caller(outcome);
    append_to_audit(caller_, {.event = asked.kind == call_kind::bind ? "bind" : "call",
                              .name = is_bound ? hidden_ : std::string(asked.name),
                              .outcome = ended});
  } catch (const std::bad_alloc&) {  // the line is lost
  }
}

}  // namespace ucx::detail
