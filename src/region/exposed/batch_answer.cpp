#include "region/exposed/batch_answer.hpp"

#include "connection/endpoint_core.hpp"
#include "region/exposed/exposed_region.hpp"
#include "region/exposed/region_extras.hpp"
#include "wire/range_list.hpp"

namespace ucx::detail {

void batch_answer::copy(const exposed_region& region, const range_list& ranges) {
  bytes_.clear();
  bytes_.reserve(static_cast<std::size_t>(ranges.total()));
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const byte_range each = ranges.at(i);
    const auto from = region.bytes().subspan(static_cast<std::size_t>(each.offset),
                                             static_cast<std::size_t>(each.length));
    bytes_.insert(bytes_.end(), from.begin(), from.end());
  }
}

void batch_answer::begin(region_extras& owner, endpoint_core& to, const frame& asked) {
  owner_ = &owner;
  to.answer_started(bytes_.size());
  frame first;
  first.code = opcode::data;
  first.session = asked.session;
  first.request = asked.request;
  prepare_pieces(to, first, bytes_);
  send_pieces();
}

void batch_answer::peer_failed() {
  stop_pieces();
  pieces_moved();
}

void batch_answer::pieces_moved() {
  if (peer().status()) stop_pieces();
  if (sending() || !(all_posted() || stopped())) return;
  peer().answer_ended(bytes_.size());
  owner_->ended(*this);
}

}  // namespace ucx::detail
