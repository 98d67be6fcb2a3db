#include "message/waiting_messages.hpp"

#include "message/matches.hpp"

namespace ucx::detail {
namespace {

template <class List>
arrived_message* first_match(const List& list, const tag_match& wanted) noexcept {
  for (arrived_message* each = list.front(); each != nullptr; each = list.next(*each)) {
    if (matches(wanted, each->said.tag)) return each;
  }
  return nullptr;
}

}  // namespace

/// Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4).
std::size_t waiting_messages::place(std::uint64_t tag) noexcept {
  return static_cast<std::size_t>((tag * 0x9e3779b97f4a7c15U) >> 56U);
}

void waiting_messages::add(arrived_message& waiting) noexcept {
  all_.push_back(waiting);
  tags_[place(waiting.said.tag)].push_back(waiting);
}

void waiting_messages::remove(arrived_message& waiting) noexcept {
  all_.remove(waiting);
  tags_[place(waiting.said.tag)].remove(waiting);
}

arrived_message* waiting_messages::find(const tag_match& wanted) const noexcept {
  const bool is_one_tag = ~wanted.mask == 0;
  return is_one_tag ? first_match(tags_[place(wanted.tag)], wanted) : first_match(all_, wanted);
}

}  // namespace ucx::detail
