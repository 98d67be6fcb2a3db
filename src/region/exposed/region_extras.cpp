#include "region/exposed/region_extras.hpp"

#include <cstring>

#include "connection/endpoint_core.hpp"
#include "region/exposed/atomic_execution.hpp"
#include "region/exposed/exposed_region.hpp"
#include "region/exposed/notification_queue.hpp"
#include "region/exposed/region_service.hpp"
#include "wire/range_list.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

region_extras::~region_extras() {
  while (batch_answer* left = batches_.front()) ended(*left);
}

/// Files have no bytes in memory, and other memory than the host's is out of the processor's reach.
exposed_region* region_extras::admit_memory(const endpoint_core& from, const frame& asked,
                                            access wanted, std::error_code& ec) noexcept {
  exposed_region* region = service_.admit(from, asked, wanted, ec);
  if (region == nullptr) return nullptr;
  if (region->kind() == memory_kind::host && !region->source()) return region;
  region->end_access();
  ec = errc::not_supported;
  return nullptr;
}

exposed_region* region_extras::admit_batch(const endpoint_core& from, const frame& asked,
                                           const range_list& ranges, access wanted,
                                           std::error_code& ec) noexcept {
  frame whole = asked;  // every range has its own offset and length
  whole.offset = 0;
  whole.length = 0;
  exposed_region* region = admit_memory(from, whole, wanted, ec);
  if (region == nullptr) return nullptr;
  for (std::size_t i = 0; i < ranges.size() && !ec; ++i) {
    const byte_range each = ranges.at(i);
    ec = region->check(each.offset, each.length, wanted);
  }
  if (!ec) return region;
  region->end_access();
  return nullptr;
}

void region_extras::read_batch(endpoint_core& from, const frame& asked,
                               std::span<const std::byte> payload) {
  const auto ranges = range_list::decode(payload);
  if (!ranges || !ranges->rest().empty() || asked.length != ranges->total()) {
    return service_.refuse(from, asked, errc::protocol_error);
  }
  if (!region_service::may_answer(from, asked.length, most_reads_beside_batches)) {
    return service_.refuse(from, asked, errc::busy);
  }
  std::error_code ec;
  exposed_region* region = admit_batch(from, asked, *ranges, access::read, ec);
  if (region == nullptr) return service_.refuse(from, asked, ec);
  const held_access until_copied(*region);
  batch_answer* answer = idle_.take();
  try {
    answer->copy(*region, *ranges);
  } catch (...) {
    idle_.give_back(answer);
    throw;
  }
  batches_.push_back(*answer);
  answer->begin(*this, from, asked);
}

void region_extras::write_batch(endpoint_core& from, const frame& asked,
                                std::span<const std::byte> payload) {
  std::error_code ec;
  const auto ranges = range_list::decode(payload);
  if (!ranges || ranges->rest().size() != ranges->total() || asked.length != ranges->total()) {
    ec = errc::protocol_error;
  }
  exposed_region* region = ec ? nullptr : admit_batch(from, asked, *ranges, access::write, ec);
  if (region != nullptr) {
    std::span<const std::byte> bytes = ranges->rest();
    for (std::size_t i = 0; i < ranges->size(); ++i) {
      const byte_range each = ranges->at(i);
      const auto length = static_cast<std::size_t>(each.length);
      std::memcpy(region->bytes().data() + each.offset, bytes.data(), length);
      bytes = bytes.subspan(length);
    }
    region->end_access();
  }
  region_service::answer_write(from, asked, ec);
}

void region_extras::perform_atomic(endpoint_core& from, const frame& asked,
                                   std::span<const std::byte> payload) {
  std::error_code ec;
  frame answer;
  answer.code = opcode::performed;
  answer.session = asked.session;
  answer.request = asked.request;
  const auto atomic = decode_atomic(payload, asked.length);
  if (!atomic) {
    ec = errc::protocol_error;
  } else if (exposed_region* region =
                 admit_memory(from, asked, access_for(atomic->wanted, atomic->fetches), ec)) {
    std::byte* const address = region->bytes().data() + asked.offset;
    if (is_aligned(reinterpret_cast<std::uintptr_t>(address), atomic->wanted.width)) {
      const std::uint64_t previous = perform(atomic->wanted, address);
      if (atomic->fetches) answer.offset = previous;
    } else {
      ec = errc::invalid_argument;
    }
    region->end_access();
  }
  answer.status = error_status(ec);
  from.reply(answer);
}

void region_extras::notify(endpoint_core& from, const frame& asked) {
  std::error_code ec;
  frame whole = asked;  // its offset is the value
  whole.offset = 0;
  whole.length = 0;
  if (asked.length != 0) ec = errc::protocol_error;
  if (exposed_region* region = ec ? nullptr : service_.admit(from, whole, access::write, ec)) {
    const held_access until_told(*region);
    if (region->notify_later(from, asked)) return;
    ec = region->notifications()->push({asked.offset, from.session().number(), from.peer()},
                                       service_.worker_);
  }
  answer_notification(from, asked, ec);
}

void region_extras::answer_notification(endpoint_core& from, const frame& asked,
                                        std::error_code ec) {
  frame answer;
  answer.code = opcode::notified;
  answer.status = error_status(ec);
  answer.session = asked.session;
  answer.request = asked.request;
  from.reply(answer);
}

void region_extras::ended(batch_answer& answer) noexcept {
  batches_.remove(answer);
  idle_.give_back(&answer);
}

void region_extras::connection_failed(const driven_connection& connection) {
  for (batch_answer* answer = batches_.front(); answer != nullptr;) {
    batch_answer* next = batches_.next(*answer);
    if (&answer->peer() == &connection) answer->peer_failed();
    answer = next;
  }
}

}  // namespace ucx::detail
