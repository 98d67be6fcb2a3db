#include "rpc/peer_gate.hpp"

#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "call/call_listing.hpp"
#include "ucx/access_rules.hpp"
#include "ucx/audit.hpp"

namespace ucx::detail {
namespace {

void append(const endpoint& caller, const char* event, std::string name, call_outcome outcome) {
  const bool is_done = outcome == call_outcome::done;
  append_to_audit(caller, {.event = event,
                           .name = std::move(name),
                           .outcome = is_done ? std::error_code() : code_at_caller(outcome)});
}

}  // namespace

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
    append(caller_, asked.kind == call_kind::bind ? "bind" : "call",
           is_bound ? hidden_ : std::string(asked.name), outcome);
  } catch (const std::bad_alloc&) {  // the line is lost
  }
}

void peer_gate::tell_later(const endpoint& caller, const std::string& function,
                           call_outcome outcome) noexcept try {
  append(caller, "call", function, outcome);
} catch (const std::bad_alloc&) {  // the line is lost
}

}  // namespace ucx::detail
