#include "connection/control_queue.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// A peer that has asked within this time is likely to ask again.
constexpr std::chrono::milliseconds attention{1};

/// A turn is followed by so many times its length for others, where there are some.
constexpr int share_of_others = 4;
/// But not longer: one piece of work may have been a long one.
constexpr std::chrono::milliseconds longest_pause{1};

}  // namespace

control_queue::line& control_queue::line_of(const void* whom) {
  const auto found = found_.find(whom);
  if (found != found_.end()) return *found->second;
  lines_.push_back({whom, {}});
  try {
    found_.emplace(whom, std::prev(lines_.end()));
  } catch (...) {
    lines_.pop_back();
    throw;
  }
  return lines_.back();
}

void control_queue::add(const void* whom, std::size_t room, move_only_handler<> work) {
  std::list<item> made;
  made.push_back({room, std::move(work)});
  expect_round();
  line& its = line_of(whom);
  its.waiting.splice(its.waiting.end(), made);
  its.room += room;
}

std::size_t control_queue::room_of(const void* whom) const noexcept {
  const auto found = found_.find(whom);
  return found == found_.end() ? 0 : found->second->room;
}

bool control_queue::may_refuse(const void* whom) noexcept {
  const auto found = found_.find(whom);
  return found == found_.end() || ++found->second->refusals <= most_refusals;
}

void control_queue::drop(const void* whom) noexcept {
  const auto found = found_.find(whom);
  if (found == found_.end()) return;
  std::list<line> gone;  // what it holds may call back here when it goes
  gone.splice(gone.end(), lines_, found->second);
  found_.erase(found);
}

void control_queue::others_ask() noexcept {
  if (!lines_.empty()) others_asked_ = worker_.api().now_or_soon();
}

void control_queue::expect_round() {
  if (expected_) return;
  worker_.defer([this] {
    expected_ = false;
    if (lines_.empty()) return;
    try {
      expect_round();
    } catch (const std::bad_alloc&) {  // there is no later
      while (!lines_.empty()) {
        try {
          serve_first();
        } catch (const std::bad_alloc&) {  // which keeps none of the others
        }
      }
      throw;
    }
    take_turn();
  });
  expected_ = true;
}

void control_queue::take_turn() {
  const clock::time_point begin = worker_.api().now();
  if (begin < next_turn_ && begin < others_asked_ + attention) return;
  const void* const whom = lines_.front().whom;
  clock::time_point now = begin;
  for (std::size_t count = 0; count < most_a_turn && now < begin + longest_turn; ++count) {
    if (lines_.empty() || lines_.front().whom != whom) break;  // it was served, or dropped
    serve_first();
    now = worker_.api().now();
  }
  next_turn_ = now + std::min<clock::duration>(share_of_others * (now - begin), longest_pause);
  if (lines_.size() > 1 && lines_.front().whom == whom) {
    lines_.splice(lines_.end(), lines_, lines_.begin());
  }
}

void control_queue::serve_first() {
  line& its = lines_.front();
  move_only_handler<> work = std::move(its.waiting.front().work);
  its.room -= its.waiting.front().room;
  its.waiting.pop_front();
  if (its.waiting.empty()) drop(its.whom);
  work();
}

}  // namespace ucx::detail
