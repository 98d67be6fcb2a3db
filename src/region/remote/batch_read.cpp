#include "region/remote/batch_read.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "region/remote/remote_region_core.hpp"
#include "wire/range_list.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void batch_read::begin(std::shared_ptr<remote_region_core> region,
                       std::span<const read_piece> pieces, std::uint64_t total,
                       clock::time_point deadline) {
  received_ = 0;
  pieces_.clear();
  places_.clear();
  range_list::begin(pieces.size(), list_);
  std::uint64_t begin = 0;
  for (const read_piece& each : pieces) {
    places_.push_back({begin, each.into});
    range_list::append({each.offset, each.into.size()}, list_);
    begin += each.into.size();
  }
  const std::uint64_t first = pieces.front().offset;
  enter(std::move(region), first, total, deadline);
}

void batch_read::ask() {
  frame asked = question(opcode::read_batch);
  asked.length = length_;
  send_question(asked, list_);
}

void batch_read::answered(const frame& answer, std::span<const std::byte> payload) {
  if (answer.code != opcode::data) return blame_peer("a read was answered by another frame");
  if (answer.status != 0) {
    leave();
    return complete(status_error(answer.status));
  }
  if (answer.length != payload.size() || payload.empty() || answer.offset > length_ ||
      payload.size() > length_ - answer.offset || payload.size() > length_ - received_) {
    return blame_peer("a read was answered with other bytes than it asked for");
  }
  if (!pieces_.add(static_cast<std::size_t>(answer.offset), payload.size()))
    return blame_peer("a read was answered with the same bytes twice");
  scatter(answer.offset, payload);
  received_ += payload.size();
  if (received_ < length_) return;
  leave();
  complete({});
}

void batch_read::scatter(std::uint64_t at, std::span<const std::byte> bytes) noexcept {
  auto next = std::upper_bound(places_.begin(), places_.end(), at,
                               [](std::uint64_t where, const place& p) { return where < p.begin; });
  for (--next; !bytes.empty(); ++next) {
    const std::span<std::byte> into =
        next->into.subspan(static_cast<std::size_t>(at - next->begin));
    const std::size_t fits = std::min(into.size(), bytes.size());
    std::memcpy(into.data(), bytes.data(), fits);
    bytes = bytes.subspan(fits);
    at += fits;
  }
}

void batch_read::give_up_for(std::error_code why) noexcept {
  if (done()) return;
  leave();
  complete(why);
}

void batch_read::recycle() noexcept {
  region_.reset();
  worker().pool_of<batch_read>().give_back(this);
}

}  // namespace ucx::detail
