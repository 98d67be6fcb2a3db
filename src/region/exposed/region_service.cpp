#include "region/exposed/region_service.hpp"

#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "base/if_there_is_memory.hpp"
#include "connection/client_ledger.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/piece_sender.hpp"
#include "region/exposed/device_reader.hpp"
#include "region/exposed/exposed_region.hpp"
#include "wire/digest.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

/// One read of a peer's, being answered: UCX reads the region until the last piece is sent.
class read_answer final : public piece_sender, public list_hook<answer_tag> {
 public:
  void begin(region_service& service, endpoint_core& to, exposed_region& region,
             const frame& asked) {
    service_ = &service;
    region_ = &region;
    asked_ = asked;
    to.answer_started(asked.length);
    frame first;
    first.code = opcode::data;
    first.session = asked.session;
    first.request = asked.request;
    prepare_pieces(to, first,
                   region.bytes().subspan(static_cast<std::size_t>(asked.offset),
                                          static_cast<std::size_t>(asked.length)),
                   asked);
    send_pieces();
  }

  const exposed_region& region() const noexcept { return *region_; }
  endpoint_core& peer() const noexcept { return pieces_endpoint(); }
  /// Ends it as far as UCX has let go of the region; may end the object.
  void peer_failed() {
    stop_pieces();
    pieces_moved();
  }
  /// Ends it now, where that can be: what has begun to go is copied, the rest is refused. May end
  /// the object.
  void withdraw() {
    const bool was_stopped = stopped();
    const bool all_go = stop_pieces();
    if (!was_stopped && !(all_go && all_posted())) refuse_rest();
    pieces_moved();
  }

 private:
  friend class region_service;
  bool may_drop_pieces() const noexcept override { return true; }
  void pieces_moved() override {
    if (peer().status()) stop_pieces();
    if (!stopped() && !all_posted() && !region_service::may_read(peer(), *region_)) {
      stop_pieces();
      refuse_rest();
    }
    if (sending() || !(all_posted() || stopped())) return;
    region_->end_access();
    peer().answer_ended(asked_.length);
    service_->ended(*this);
  }

  void refuse_rest() noexcept {
    if (peer().handle() == nullptr || peer().status()) return;
    try {
      service_->refuse(peer(), asked_, errc::revoked);
    } catch (const std::bad_alloc&) {  // nothing reports it later
      peer().blame(errc::no_memory, "no memory to refuse a read");
    }
  }

  region_service* service_ = nullptr;
  exposed_region* region_ = nullptr;
  frame asked_;
};

region_service::region_service(worker_core& worker)
    : worker_(worker),
      idle_(std::make_unique<pool<read_answer>>()),
      files_(worker),
      devices_(worker) {
  devices_.read_slowly_by(std::make_unique<device_reader>(worker));
}

region_service::~region_service() {
  // UCX's worker is gone, with or without a word about what it had left to send.
  while (read_answer* left = answers_.front()) {
    left->region_->end_access();
    ended(*left);
  }
}

void region_service::serve_regions_of(std::shared_ptr<context_core> owner) {
  owner->workers().add(worker_.weak_from_this());
  other_owner_ = std::move(owner);
}

/// Returns the context that the peer means; null where it is none of those that are served.
context_core* region_service::owner_with(std::uint64_t incarnation) const noexcept {
  if (worker_.context().incarnation() == incarnation) return &worker_.context();
  return other_owner_ && other_owner_->incarnation() == incarnation ? other_owner_.get() : nullptr;
}

/// Looks the region up for one access, which the caller ends.
exposed_region* region_service::admit(const endpoint_core& from, const frame& asked, access wanted,
                                      std::error_code& ec) noexcept {
  const auto& account = from.account();
  if (account && account->counts_requests()) ec = account->ask(worker_.api().now());
  if (ec) return nullptr;
  context_core* const owner = owner_with(asked.incarnation);
  if (owner == nullptr) {
    ec = errc::stale_region;
    return nullptr;
  }
  region_table& regions = owner->regions();
  auto* const region =
      static_cast<exposed_region*>(regions.begin_access(asked.region, asked.generation, ec));
  if (region == nullptr) return nullptr;
  access granted = access::read_write;
  if (region->requires_grants()) {
    const std::optional<access> rights = from.grants().rights_to(asked.region);
    if (!rights) {  // for this peer it does not exist
      region->end_access();
      ec = regions.why_missing(asked.generation);
      if (from.grants().was_revoked(asked.region)) ec = errc::revoked;
      return nullptr;
    }
    granted = *rights;
  }
  if (asked.generation != region->generation()) {
    ec = errc::stale_region;
  } else if (!includes(granted, wanted)) {
    ec = errc::permission_denied;
  } else {
    ec = region->check(asked.offset, asked.length, wanted);
  }
  if (!ec) return region;
  region->end_access();
  return nullptr;
}

bool region_service::may_read(const endpoint_core& to, const exposed_region& region) noexcept {
  return !region.requires_grants() || to.grants().allow(region.id(), access::read);
}

bool region_service::may_answer(const endpoint_core& to, std::uint64_t bytes,
                                unsigned most) noexcept {
  const auto& account = to.account();
  return to.answers() < most && (!account || !account->may_send(bytes));
}

void region_service::read(endpoint_core& from, const frame& asked) {
  std::error_code ec;
  if (asked.length == 0) return refuse(from, asked, errc::invalid_argument);
  if (!may_answer(from, asked.length, most_reads)) return refuse(from, asked, errc::busy);
  exposed_region* region = admit(from, asked, access::read, ec);
  if (region == nullptr) return refuse(from, asked, ec);
  held_access until_answered(*region);
  // The processor can not look at the memory of another device.
  if (wants_digests(asked) && region->kind() != memory_kind::host) {
    return refuse(from, asked, errc::not_supported);
  }
  if (region->kind() != memory_kind::host) {
    return devices_.read(from, *region, until_answered, asked);
  }
  if (region->source()) return files_.read(from, *region, until_answered, asked);
  read_answer* answer = idle_->take();
  until_answered.leave();
  answers_.push_back(*answer);
  answer->begin(*this, from, *region, asked);
}

void region_service::write(endpoint_core& from, const frame& asked,
                           std::span<const std::byte> payload) {
  std::error_code ec;
  if (asked.length != payload.size() || payload.empty()) ec = errc::protocol_error;
  exposed_region* region = ec ? nullptr : admit(from, asked, access::write, ec);
  if (region != nullptr) {
    const held_access until_taken(*region);
    if (const std::shared_ptr<write_sink> sink = region->sink()) {
      return sink->write(from, asked, payload);
    }
    std::memcpy(region->bytes().data() + asked.offset, payload.data(), payload.size());
  }
  answer_write(from, asked, ec);
}

void region_service::answer_write(endpoint_core& from, const frame& asked, std::error_code ec) {
  frame answer;
  answer.code = opcode::written;
  answer.status = error_status(ec);
  answer.session = asked.session;
  answer.request = asked.request;
  answer.offset = asked.offset;
  answer.length = asked.length;
  from.reply(answer);
}

void region_service::refuse(endpoint_core& to, const frame& asked, std::error_code why) {
  frame answer;
  answer.code = opcode::data;
  answer.status = error_status(why);
  answer.session = asked.session;
  answer.request = asked.request;
  to.reply(answer);
}

void region_service::ended(read_answer& answer) noexcept {
  answers_.remove(answer);
  idle_->give_back(&answer);
}

bool region_service::answering(const counted_region& region) const noexcept {
  for (read_answer* answer = answers_.front(); answer != nullptr; answer = answers_.next(*answer)) {
    if (&answer->region() == &region) return true;
  }
  return files_.answering(region) || devices_.answering(region);
}

void region_service::connection_failed(const driven_connection& connection) {
  for (read_answer* answer = answers_.front(); answer != nullptr;) {
    read_answer* next = answers_.next(*answer);
    if (&answer->peer() == &connection) answer->peer_failed();
    answer = next;
  }
  extras_.connection_failed(connection);
  files_.connection_failed(connection);
  devices_.connection_failed(connection);
}

void region_service::withdraw(const counted_region& region) {
  // UCX has the memory until the peer has taken what was sent. Its readers get what they asked for.
  for (read_answer* answer = worker_.api().is_ucx() ? nullptr : answers_.front();
       answer != nullptr;) {
    read_answer* next = answers_.next(*answer);
    if (&answer->region() == &region) answer->withdraw();
    answer = next;
  }
  files_.withdraw(region);
  devices_.withdraw(region);
}

void region_service::cut_off(const counted_region& region) {
  // Failing a connection ends its answers, so the walk begins anew each time.
  for (read_answer* answer = answers_.front(); answer != nullptr;) {
    read_answer* next = answers_.next(*answer);
    if (&answer->region() == &region && !answer->peer().status()) {
      answer->peer().fail(
          make_error_code(errc::connection_reset),
          if_there_is_memory("the peer did not take its answers while their region was withdrawn"));
      next = answers_.front();
    }
    answer = next;
  }
}

}  // namespace ucx::detail
