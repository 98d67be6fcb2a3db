#include "connection/client_ledger.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/logger.hpp"
#include "os/source_network.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// Of a second.
constexpr unsigned most_lines = 10;

std::string source_of(const socket_address& from) {
  if (from.empty()) return {};
  const std::string network = source_network(*from.native());
  return network.empty() ? network : "address " + network;
}

/// Groups do not count: they are many.
std::string identity_of(const peer_identity* who, const std::string& source) {
  if (who != nullptr && !who->certificate.empty()) return "certificate \"" + who->certificate + '"';
  if (who != nullptr && !who->token.empty()) return "token \"" + who->token + '"';
  if (who != nullptr && who->user) return "user " + std::to_string(*who->user);
  if (who != nullptr && who->is_owner) return "owner";
  return source.empty() ? "anybody" : "anybody at " + source;
}

}  // namespace

client_ledger::client_ledger(const server_limits& limits, logger& log) noexcept
    : limits_(limits), log_(log) {}

client_ledger::party* client_ledger::party_of(const client_limits& most, const std::string& name) {
  if (name.empty()) return nullptr;
  const auto made = named_.try_emplace(name, party{most, name});
  ++made.first->second.accounts;
  return &made.first->second;
}

std::shared_ptr<client_account> client_ledger::admit(const peer_identity* who,
                                                     const socket_address& from) {
  const std::string source = source_of(from);
  const std::string identity = identity_of(who, source);
  parties within = {&all_};
  failure refusal;
  std::unique_lock guard(mutex_);
  try {
    within[1] = party_of(limits_.per_identity, identity);
    within[2] = party_of(limits_.per_address, source);
    for (const party* each : within) {
      if (each == nullptr || refusal.code || each->most.connections == 0) continue;
      if (each->used.connections < each->most.connections) continue;
      tell(*each, "connections", each->most.connections);
      refusal = {errc::busy, each->name + " has as many connections as it may have"};
    }
    const auto made =
        std::make_shared<client_account>(shared_from_this(), within, std::move(refusal));
    if (made->refusal().code) {
      made->too_many_ = ++refused_ > most_refused;
    } else {
      for (party* each : within) {
        if (each != nullptr) ++each->used.connections;
      }
    }
    guard.unlock();  // the account would take it
    return made;
  } catch (const std::bad_alloc&) {
    leave(within);
    throw;
  }
}

void client_ledger::leave(const parties& of) noexcept {
  for (party* each : of) {
    if (each == nullptr || each == &all_ || --each->accounts > 0) continue;
    named_.erase(named_.find(each->name));
  }
}

/// A line of the log, of which peers may cause any number.
void client_ledger::tell(const party& full, const char* of_what, std::size_t most) noexcept {
  if (!log_.writes(log_level::warning)) return;
  const clock::time_point now = clock::now();
  if (now - telling_since_ > std::chrono::seconds(1)) {
    telling_since_ = now;
    told_lines_ = 0;
  }
  if (++told_lines_ > most_lines) return;
  try {
    log_.write(log_level::warning, full.name + ": refused, it has as many " + of_what +
                                       " as the limit allows (" + std::to_string(most) + ")");
  } catch (const std::bad_alloc&) {  // it is refused all the same
  }
}

client_account::client_account(std::shared_ptr<client_ledger> of, client_ledger::parties within,
                               failure refusal) noexcept
    : ledger_(std::move(of)),
      parties_(within),
      counts_requests_(is_bounded(&client_limits::requests_per_second)),
      counts_bytes_(is_bounded(&client_limits::bytes_in_flight)),
      refusal_(std::move(refusal)) {}

client_account::~client_account() {
  const std::lock_guard guard(ledger_->mutex_);
  for (client_ledger::party* each : parties_) {
    if (each == nullptr) continue;
    if (!refusal_.code) --each->used.connections;
    each->used.open_names -= names_;
    each->used.bytes_in_flight -= bytes_;
  }
  if (refusal_.code) --ledger_->refused_;
  ledger_->leave(parties_);
}

bool client_account::is_bounded(bound what) const noexcept {
  return std::any_of(parties_.begin(), parties_.end(), [what](const client_ledger::party* each) {
    return each != nullptr && each->most.*what != 0;
  });
}

std::error_code client_account::check(bound what, std::size_t more, const char* of_what,
                                      std::error_code refused) const noexcept {
  if (!is_bounded(what)) return {};
  const std::lock_guard guard(ledger_->mutex_);
  for (const client_ledger::party* each : parties_) {
    if (each == nullptr || each->most.*what == 0) continue;
    const std::size_t left = each->most.*what - std::min(each->most.*what, each->used.*what);
    const bool is_alone = what == &client_limits::bytes_in_flight && each->used.*what == 0;
    if (more <= left || is_alone) continue;
    ledger_->tell(*each, of_what, each->most.*what);
    return refused;
  }
  return {};
}

void client_account::change(bound what, std::size_t& own, std::size_t by, bool adds) noexcept {
  if (!is_bounded(what)) return;
  const std::lock_guard guard(ledger_->mutex_);
  own = adds ? own + by : own - by;
  for (client_ledger::party* each : parties_) {
    if (each != nullptr) each->used.*what = adds ? each->used.*what + by : each->used.*what - by;
  }
}

std::error_code client_account::may_open() const noexcept {
  return check(&client_limits::open_names, 1, "open names", errc::too_many_client_files);
}
void client_account::opened() noexcept { change(&client_limits::open_names, names_, 1, true); }
void client_account::closed(std::size_t names) noexcept {
  change(&client_limits::open_names, names_, names, false);
}

std::error_code client_account::may_send(std::uint64_t bytes) const noexcept {
  return check(&client_limits::bytes_in_flight, static_cast<std::size_t>(bytes), "bytes in flight",
               errc::busy);
}
void client_account::sends(std::uint64_t bytes) noexcept {
  change(&client_limits::bytes_in_flight, bytes_, static_cast<std::size_t>(bytes), true);
}
void client_account::sent(std::uint64_t bytes) noexcept {
  change(&client_limits::bytes_in_flight, bytes_, static_cast<std::size_t>(bytes), false);
}

/// A bucket of each party that holds a second's worth, and is filled as time passes.
std::error_code client_account::ask(clock::time_point now) noexcept {
  constexpr bound what = &client_limits::requests_per_second;
  if (!counts_requests_) return {};
  const std::lock_guard guard(ledger_->mutex_);
  for (client_ledger::party* each : parties_) {
    if (each == nullptr || each->most.*what == 0) continue;
    const auto most = static_cast<double>(each->most.*what);
    const std::chrono::duration<double> passed = now - each->refilled;
    // Workers look at the clock before they have their turn here.
    const double more = std::max(0.0, passed.count()) * most;
    each->requests =
        each->refilled == clock::time_point() ? most : std::min(most, each->requests + more);
    each->refilled = std::max(each->refilled, now);
    if (each->requests >= 1) continue;
    ledger_->tell(*each, "requests a second", each->most.*what);
    return errc::busy;
  }
  for (client_ledger::party* each : parties_) {
    if (each != nullptr && each->most.*what != 0) each->requests -= 1;
  }
  return {};
}

}  // namespace ucx::detail
