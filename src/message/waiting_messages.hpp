// The tagged messages of a worker that no receive has waited for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/intrusive_list.hpp"
#include "message/arrived_message.hpp"
#include "ucx/receive_target.hpp"

namespace ucx::detail {

/// In the order in which they came. A receive of one tag looks at the messages of few other tags
/// only, however many there are. A receive of several tags looks at all.
class waiting_messages {
 public:
  void add(arrived_message& waiting) noexcept;
  void remove(arrived_message& waiting) noexcept;
  /// Returns whether the message is here.
  static bool has(const arrived_message& message) noexcept {
    return static_cast<const list_hook<equal_tags_tag>&>(message).linked();
  }
  /// Returns the first that has a tag that is wanted, or nothing.
  arrived_message* find(const tag_match& wanted) const noexcept;

 private:
  using by_tag = intrusive_list<arrived_message, equal_tags_tag>;

  static std::size_t place(std::uint64_t tag) noexcept;

  intrusive_list<arrived_message, arrival_order_tag> all_;
  std::array<by_tag, 256> tags_;
};

}  // namespace ucx::detail
