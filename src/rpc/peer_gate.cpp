#include "rpc/peer_gate.hpp"

#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "call/call_listing.hpp"
#include "connection/channel.hpp"
#include "connection/endpoint_core.hpp"
#include "ucx/access_rules.hpp"
#include "ucx/audit.hpp"
#include "ucx/peer_identity.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

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
  const std::shared_ptr<endpoint_core>& over = core_access::core(caller_);
  if (!over || over->is_inherited()) return false;
  worker_core& worker = over->worker();
  const peer_identity anybody;
  // Under the lock the server does not end.
  const std::lock_guard guard(worker.lock());
  const control_server* const server = worker.control_server();
  if (server == nullptr) return false;
  const std::shared_ptr<const peer_identity> peer = over->ucx().identity();
  return server->allows(peer ? *peer : anybody, worker.identity(), over->number(),
                        access_right::call, function);
}

void peer_gate::names(std::string_view function) noexcept try {
  named_ = function;
} catch (const std::bad_alloc&) {  // the line is lost
}

std::string peer_gate::name_of(const asked_call& asked) const {
  return asked.kind == call_kind::bound ? named_ : std::string(asked.name);
}

void peer_gate::tell(const asked_call& asked, call_outcome outcome) noexcept {
  const bool is_done = outcome == call_outcome::done;
  const bool is_bound = asked.kind == call_kind::bound;
  if (is_done && (is_bound || asked.name == listing_name)) return;
  if (is_bound && named_.empty()) return;
  try {
    append(caller_, asked.kind == call_kind::bind ? "bind" : "call", name_of(asked), outcome);
  } catch (const std::bad_alloc&) {  // the line is lost
  }
}

void peer_gate::tell_later(const endpoint& caller, const std::string& function, bool is_bound,
                           call_outcome outcome) noexcept try {
  if (function.empty() || (is_bound && outcome == call_outcome::done)) return;
  append(caller, "call", function, outcome);
} catch (const std::bad_alloc&) {  // the line is lost
}

}  // namespace ucx::detail
