#include "message/arrived_messages.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "message/matches.hpp"
#include "message/message_exchange.hpp"
#include "message/message_link.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Payloads below are copied also where UCX would leave its buffer: that is as large as a segment,
/// and there are few of them.
constexpr std::size_t least_kept = 2048;

/// Limits of the memory that idle messages keep.
constexpr std::size_t most_bytes_kept = 4096;
constexpr std::size_t most_idle_kept = 4096;

/// How many windows' worth of messages are kept whose connections are gone.
constexpr std::size_t most_orphaned_windows = 16;

}  // namespace

void arrived_messages::close() noexcept {
  for (const std::unique_ptr<arrived_message>& each : all_) {
    if (each->lasting != nullptr) {
      worker_.api().am_data_release(worker_.handle(), std::exchange(each->lasting, nullptr));
    }
  }
}

arrived_message* arrived_messages::take_idle() {
  if (idle_.empty()) {
    idle_.reserve(all_.size() + 1);  // so that giving back needs no memory
    return all_.emplace_back(std::make_unique<arrived_message>()).get();
  }
  arrived_message* const taken = idle_.back();
  idle_.pop_back();
  return taken;
}

arrived_message* arrived_messages::keep(endpoint_core& from, const read_parcel& read,
                                        std::span<const std::byte> payload, void* lasting,
                                        std::size_t units) {
  arrived_message* made = nullptr;
  try {
    made = take_idle();
    made->header.assign(read.header.begin(), read.header.end());
    made->bytes = {};
    if (!read.offer.empty()) {
      lasting = nullptr;
      made->copy.assign(read.offer.begin(), read.offer.end());
    } else if (lasting != nullptr && payload.size() >= least_kept) {
      made->bytes = payload;
    } else {
      lasting = nullptr;
      made->copy.assign(payload.begin(), payload.end());
      made->bytes = made->copy;
    }
  } catch (const std::bad_alloc&) {
    if (made != nullptr) idle_.push_back(made);
    return nullptr;
  }
  made->from = &from;
  made->said = read.said;
  made->lasting = lasting;
  made->units = units;
  from.messages().incoming().add(*made);
  return made;
}

arrived_message* arrived_messages::find(const endpoint_core* from,
                                        const tag_match& wanted) const noexcept {
  if (from != nullptr) return find_of(*from, wanted);
  return waiting_.find(wanted);
}

/// Looks at the messages of that peer alone: others may have left very many.
arrived_message* arrived_messages::find_of(const endpoint_core& from,
                                           const tag_match& wanted) const noexcept {
  const auto& all = from.messages().incoming().all();
  for (arrived_message* each = all.front(); each != nullptr; each = all.next(*each)) {
    if (waiting_.has(*each) && matches(wanted, each->said.tag)) return each;
  }
  return nullptr;
}

void arrived_messages::take_out(arrived_message& waiting) noexcept {
  waiting_.remove(waiting);
  matched(waiting);
}

void arrived_messages::matched(arrived_message& found) noexcept {
  found.owner = arrived_message::whose::matched;
  if (!std::exchange(found.said.acknowledge, false) || found.from == nullptr) return;
  found.from->messages().incoming().tell_taken(found.said);
}

void arrived_messages::discard(arrived_message& gone, errc why) noexcept {
  if (gone.from != nullptr) {
    incoming_messages& link = gone.from->messages().incoming();
    if (gone.is_awaited() && !gone.failure) link.refuse(gone.said, make_error_code(why));
    link.remove(gone);
    link.consumed(gone.units);
  } else {
    orphaned_units_ -= gone.units;
    worker_.messages().budget().release(gone.units);
  }
  free(gone);
}

void arrived_messages::free(arrived_message& gone) noexcept {
  if (gone.lasting != nullptr) {
    worker_.api().am_data_release(worker_.handle(), std::exchange(gone.lasting, nullptr));
  }
  gone.bytes = {};
  gone.failure.clear();
  gone.read = 0;
  gone.units = 0;
  gone.owner = arrived_message::whose::kept;
  gone.receive = nullptr;
  const bool keeps = idle_.size() < most_idle_kept;
  if (!keeps || gone.copy.capacity() > most_bytes_kept) gone.copy = std::vector<std::byte>();
  if (!keeps || gone.header.capacity() > most_bytes_kept) gone.header = std::vector<std::byte>();
  idle_.push_back(&gone);
}

bool arrived_messages::orphan(arrived_message& left, bool room) noexcept {
  left.from = nullptr;
  orphaned_units_ += left.units;
  worker_.messages().budget().keep(left.units);
  const worker_options& options = worker_.options();
  const std::size_t windows = most_orphaned_windows * (options.message_window / window_unit);
  const std::size_t most = std::min(windows, options.untaken_messages / window_unit);
  if (left.owner != arrived_message::whose::kept || (room && orphaned_units_ <= most)) return true;
  waiting_.remove(left);
  discard(left, errc::connection_reset);
  return false;
}

}  // namespace ucx::detail
