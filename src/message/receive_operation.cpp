#include "message/receive_operation.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "memory/buffer_home.hpp"
#include "memory/buffer_pool_core.hpp"
#include "message/arrived_message.hpp"
#include "message/message_exchange.hpp"
#include "message/message_link.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

std::string words_for(const tag_match& wanted) {
  if (wanted.mask == 0) return " with any tag";
  std::string text = " with tag " + std::to_string(wanted.tag);
  if (wanted.mask != tag_match::every_bit) text += " by mask " + std::to_string(wanted.mask);
  return text;
}

}  // namespace

void receive_operation::begin(worker_core& worker, kept_alive&& held, source kind,
                              const tag_match& wanted, std::span<std::byte> into,
                              clock::time_point deadline) {
  into_.assign(into);
  begin(worker, std::move(held), kind, wanted, deadline, into_.find_devices(worker.copiers()));
}

void receive_operation::begin(worker_core& worker, kept_alive&& held, source kind,
                              const tag_match& wanted, const receive_target& into,
                              clock::time_point deadline) {
  if (into.runs.empty()) {
    into_.assign(into.only);
  } else {
    into_.assign(into.runs);
  }
  const std::error_code unreachable = into_.find_devices(worker.copiers());
  parts_ = into.parts;
  made_ = parts_ != nullptr ? &parts_->memory_ : into.made;
  pool_ = into.pool;
  most_ = pool_ ? pool_->options().size : into.most;
  begin(worker, std::move(held), kind, wanted, deadline, unreachable);
}

/// Everything else is as the end of its life before left it.
void receive_operation::begin(worker_core& worker, kept_alive&& held, source kind,
                              const tag_match& wanted, clock::time_point deadline,
                              std::error_code unreachable) noexcept {
  source_ = kind;
  wanted_ = wanted;
  info_ = {};
  came_ = false;
  received_ = 0;
  start(worker, std::move(held), deadline);
  from_ = endpoint();
  counted_ = from_ != nullptr;
  if (counted_) endpoint()->messages().wait_began();
  if (unreachable) finish(unreachable);
}

bool receive_operation::find_buffer(std::uint64_t length) {
  if (place_ || length > most_) return true;
  place_ = pool_->take_for(*this);
  return static_cast<bool>(place_);
}

void receive_operation::wait_for_buffer(arrived_message* held) noexcept {
  lacks_buffer_ = true;
  held_ = held;
  if (held_ != nullptr) held_->receive = this;
}

void receive_operation::needs_no_buffer() noexcept {
  lacks_buffer_ = false;
  if (held_ != nullptr) held_->receive = nullptr;
  held_ = nullptr;
  // In the line it would get the next buffer of somebody who has a message.
  if (move_only_handler<> due = pool_->leave(*this)) worker().queue_handler(std::move(due));
}

/// Finds out whether a message of this length has a place, and makes one where that is wanted.
bool receive_operation::prepare(std::uint64_t length, std::error_code& ec) {
  info_.length = length;
  if (length > (made_ != nullptr ? most_ : into_.size())) {
    ec = errc::message_truncated;
    return false;
  }
  if (made_ == nullptr) return true;
  try {
    if (parts_ != nullptr) parts_->parts_.clear();  // of the memory that goes
    buffer made = pool_ ? std::move(place_) : buffer(static_cast<std::size_t>(length));
    made.resize(static_cast<std::size_t>(length));
    give_back(std::exchange(*made_, std::move(made)));
  } catch (const std::bad_alloc&) {
    ec = errc::no_memory;
    return false;
  }
  into_.assign(made_->bytes());
  return true;
}

void receive_operation::take(arrived_message& found) {
  found.taken = true;
  came_ = true;
  kind_ = found.said.kind;
  info_.tag = found.said.tag;
  info_.memory = found.said.memory;
  info_.length = found.said.length;
  if (found.failure) return finish(found.failure);
  if (!found.here()) return take(*found.from, found.said, found.offer());
  std::error_code ec;
  if (prepare(found.bytes.size(), ec)) ec = into_.copy_in(0, found.bytes, deadline());
  finish(ec);
}

void receive_operation::take(std::uint64_t tag, std::span<const std::byte> payload) {
  came_ = true;
  kind_ = message_kind::tagged;
  info_ = {tag, payload.size(), memory_kind::host};
  std::error_code ec;
  if (made_ != nullptr || payload.size() > into_.size()) {
    if (prepare(payload.size(), ec)) ec = into_.copy_in(0, payload, deadline());
  } else {
    ec = into_.copy_in(0, payload, deadline());
  }
  finish(ec);
}

void receive_operation::take(endpoint_core& from, const parcel& said,
                             std::span<const std::byte> payload) {
  message_link& link = from.messages();
  came_ = true;
  kind_ = said.kind;
  info_.tag = said.tag;
  info_.memory = said.memory;
  std::error_code ec;
  const bool fits = prepare(said.length, ec);
  if (said.code == parcel_code::message) {
    if (said.acknowledge) link.incoming().tell_taken(said);
    if (fits) ec = into_.copy_in(0, payload, deadline());
    return finish(ec);
  }
  if (!fits) {
    link.incoming().refuse(said, ec);
    return finish(ec);
  }
  if (said.length == 0) {
    link.incoming().tell_taken(said);
    return finish({});
  }
  try {
    id_ = worker().messages().receiving().add(*this);
  } catch (const std::bad_alloc&) {
    link.incoming().refuse(said, make_error_code(errc::no_memory));
    return finish(make_error_code(errc::no_memory));
  }
  if (endpoint() == nullptr) attach(from.shared_from_this());
  if (!counted_) link.wait_began();
  counted_ = true;
  message_ = said.number;
  kind_ = said.kind;
  link.incoming().add(*this);
  worker().tick_soon();  // from here on the peer's heart is watched
  if (said.lends && !into_.on_device() && borrow(link, said, payload)) return;
  link.incoming().grant(said, id_);
}

bool receive_operation::borrow(message_link& link, const parcel& said,
                               std::span<const std::byte> offer) {
  const std::optional<cma_offer> lent = decode_offer(offer);
  if (!lent) return false;
  loan_.begin(*lent, said);
  if (!link.incoming().borrow(loan_)) return false;
  borrows_ = true;
  worker().messages().borrow(*this);
  return true;
}

/// Returns what the announcement said, as far as an answer to it repeats that.
parcel receive_operation::announced() const noexcept {
  parcel said;
  said.kind = kind_;
  said.number = message_;
  said.tag = info_.tag;
  said.length = info_.length;
  return said;
}

bool receive_operation::read_loan(std::size_t most) {
  const cma_read::outcome read = loan_.read(worker().api(), into_, most);
  if (read == cma_read::outcome::more) return true;
  const parcel said = announced();
  message_link& link = endpoint()->messages();
  borrows_ = false;
  worker().messages().borrowed(*this);
  if (read == cma_read::outcome::whole) {
    link.incoming().tell_taken(said);
    finish({});
  } else {
    // The sender gave it up, and says so; or the system changed its mind, and it sends it.
    link.incoming().grant(said, id_);
  }
  return false;
}

void receive_operation::piece(std::uint64_t offset, std::span<const std::byte> payload) {
  const std::uint64_t total = info_.length;
  if (offset > total || payload.size() > total - offset || payload.size() > total - received_) {
    return endpoint()->blame(errc::protocol_error,
                             "a message came with other bytes than were announced");
  }
  const std::error_code ec = into_.copy_in(static_cast<std::size_t>(offset), payload, deadline());
  if (ec) return give_up_for(ec);
  received_ += payload.size();
  if (received_ == total) finish({});
}

std::size_t receive_operation::feed(std::span<const std::byte> bytes) {
  const std::size_t size = std::min(bytes.size(), into_.size() - received_);
  if (const std::error_code ec = into_.copy_in(received_, bytes.first(size), deadline())) {
    finish(ec);
    return 0;
  }
  received_ += size;
  info_.length = received_;
  const bool enough = source_ == source::stream_some || received_ == into_.size();
  if (enough) finish({});
  return size;
}

/// A function of the user's has to wait until no lock is held.
void receive_operation::give_back(buffer&& unwanted) noexcept {
  if (move_only_handler<> due = buffer_home::give_back(std::move(unwanted))) {
    worker().queue_handler(std::move(due));
  }
}

void receive_operation::leave_pool() noexcept {
  if (lacks_buffer_) worker().messages().needs_no_buffer(*this);
  give_back(std::move(place_));
  if (move_only_handler<> due = pool_->leave(*this)) worker().queue_handler(std::move(due));
  pool_.reset();
}

void receive_operation::buffer_came() noexcept { worker().buffer_came(); }

void receive_operation::finish(std::error_code outcome) noexcept {
  if (pool_) leave_pool();
  if (waits_) {
    waits_ = false;
    if (source_ == source::tagged) {
      worker().messages().remove(*this);
    } else {
      endpoint()->messages().incoming().remove_from_stream(*this);
    }
  }
  if (id_ != 0) {
    worker().messages().receiving().remove(std::exchange(id_, 0));
    endpoint()->messages().incoming().remove(*this);
  }
  if (std::exchange(borrows_, false)) worker().messages().borrowed(*this);
  if (std::exchange(counted_, false)) endpoint()->messages().wait_ended();
  if (parts_ != nullptr && !outcome) outcome = parts_->find_parts();
  complete(outcome);
}

void receive_operation::give_up_for(std::error_code why) noexcept {
  if (done()) return;
  // What is on its way is dropped when it comes, and the sender is told to stop.
  if (id_ != 0) {
    endpoint()->messages().incoming().refuse(announced(), make_error_code(errc::message_refused));
  }
  finish(why);
}

void receive_operation::connection_failed(std::error_code why) noexcept {
  if (done()) return;
  // A message that is here outlives its connection: the receive waits for a buffer, not for a peer.
  if (lacks_buffer_ && worker().messages().is_here(*this)) return;
  finish(why);
}

std::string receive_operation::describe() const {
  std::string text = "receive of ";
  if (source_ == source::stream_some || source_ == source::stream_all) {
    text += "bytes of the stream";
  } else {
    text += "a message";
    if (source_ == source::tagged) text += words_for(wanted_);
  }
  text += endpoint() != nullptr ? " from " + endpoint()->peer_name() : " from anybody";
  if (info_.length == 0 && !came_) return text;
  text.append(" (of ").append(std::to_string(info_.length)).append(" bytes");
  if (came_) {
    text += kind_ == message_kind::active ? ", for handler " : ", with tag ";
    text += std::to_string(info_.tag);
  }
  return text + ")";
}

void receive_operation::recycle() noexcept {
  made_ = nullptr;
  parts_ = nullptr;
  if (into_.on_device()) into_.clear();  // which lets go of who copies
  worker().pool_of<receive_operation>().give_back(this);
}

}  // namespace ucx::detail
