// What peers may do with a region beyond reading and writing it: batches, atomics, notifications.
// Apart from region_service.cpp, which they share nothing with but how an access is admitted.
#include <cstring>

#include "connection/endpoint_core.hpp"
#include "region/exposed/atomic_execution.hpp"
#include "region/exposed/exposed_region.hpp"
#include "region/exposed/notification_queue.hpp"
#include "region/exposed/region_service.hpp"
#include "wire/range_list.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

/// Files have no bytes in memory, and other memory than the host's is out of the processor's reach.
exposed_region* region_service::admit_memory(const frame& asked, access wanted,
                                             std::error_code& ec) noexcept {
  exposed_region* region = admit(asked, wanted, ec);
  if (region == nullptr) return nullptr;
  if (region->kind() == memory_kind::host && !region->source()) return region;
  region->end_access();
  ec = errc::not_supported;
  return nullptr;
}

exposed_region* region_service::admit_batch(const frame& asked, const range_list& ranges,
                                            access wanted, std::error_code& ec) noexcept {
  frame whole = asked;  // every range has its own offset and length
  whole.offset = 0;
  whole.length = 0;
  exposed_region* region = admit_memory(whole, wanted, ec);
  if (region == nullptr) return nullptr;
  for (std::size_t i = 0; i < ranges.size() && !ec; ++i) {
    const byte_range each = ranges.at(i);
    ec = region->check(each.offset, each.length, wanted);
  }
  if (!ec) return region;
  region->end_access();
  return nullptr;
}

void region_service::read_batch(endpoint_core& from, const frame& asked,
                                std::span<const std::byte> payload) {
  const auto ranges = range_list::decode(payload);
  if (!ranges || !ranges->rest().empty() || asked.length != ranges->total()) {
    return refuse(from, asked, errc::protocol_error);
  }
  if (from.answers() >= most_reads_beside_batches) return refuse(from, asked, errc::busy);
  std::error_code ec;
  exposed_region* region = admit_batch(asked, *ranges, access::read, ec);
  if (region == nullptr) return refuse(from, asked, ec);
  const held_access until_copied(*region);
  batch_answer* answer = idle_batches_.take();
  try {
    answer->copy(*region, *ranges);
  } catch (...) {
    idle_batches_.give_back(answer);
    throw;
  }
  batches_.push_back(*answer);
  answer->begin(*this, from, asked);
}

void region_service::write_batch(endpoint_core& from, const frame& asked,
                                 std::span<const std::byte> payload) {
  std::error_code ec;
  const auto ranges = range_list::decode(payload);
  if (!ranges || ranges->rest().size() != ranges->total() || asked.length != ranges->total()) {
    ec = errc::protocol_error;
  }
  exposed_region* region = ec ? nullptr : admit_batch(asked, *ranges, access::write, ec);
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
  answer_write(from, asked, ec);
}

void region_service::perform_atomic(endpoint_core& from, const frame& asked,
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
                 admit_memory(asked, access_for(atomic->wanted, atomic->fetches), ec)) {
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

void region_service::notify(endpoint_core& from, const frame& asked) {
  std::error_code ec;
  frame whole = asked;  // its offset is the value
  whole.offset = 0;
  whole.length = 0;
  if (asked.length != 0) ec = errc::protocol_error;
  if (exposed_region* region = ec ? nullptr : admit(whole, access::write, ec)) {
    const held_access until_told(*region);
    ec = region->notifications()->push({asked.offset, from.session().number(), from.peer()},
                                       worker_);
  }
  frame answer;
  answer.code = opcode::notified;
  answer.status = error_status(ec);
  answer.session = asked.session;
  answer.request = asked.request;
  from.reply(answer);
}

}  // namespace ucx::detail
