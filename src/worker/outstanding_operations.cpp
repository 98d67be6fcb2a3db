#include "worker/outstanding_operations.hpp"

#include <algorithm>

#include "ucx/error.hpp"
#include "worker/driven_connection.hpp"

namespace ucx::detail {
namespace {

/// Returns whether it is an operation of a user's, over `connection` if there is one.
bool counts(const operation& started, const driven_connection* connection) noexcept {
  return !started.is_own() && !started.is_blocking() &&
         (connection == nullptr || started.connection() == connection);
}

/// Returns the first from `op` on that is `wanted`.
template <class Wanted>
operation* first_of(const intrusive_list<operation, outstanding_tag>& begun, operation* op,
                    Wanted wanted) noexcept {
  while (op != nullptr && !wanted(*op)) op = begun.next(*op);
  return op;
}

/// Calls `tell` once for each that is wanted, whatever else ends with one of them. Their numbers
/// rise along the list.
template <class Wanted, class Tell>
void for_each(const intrusive_list<operation, outstanding_tag>& begun, Wanted wanted,
              Tell tell) noexcept {
  for (operation* op = first_of(begun, begun.front(), wanted); op != nullptr;) {
    const std::uint64_t number = op->sequence();
    operation* next = first_of(begun, begun.next(*op), wanted);
    op->retain();
    if (next != nullptr) next->retain();
    tell(*op);
    op->release();
    // Several may be one, and end together.
    const bool ended = next != nullptr && next->done();
    if (next != nullptr) next->release();
    if (ended) {
      next = first_of(begun, begun.front(), [&](const operation& each) {
        return each.sequence() > number && wanted(each);
      });
    }
    op = next;
  }
}

}  // namespace

void outstanding_operations::expire(clock::time_point now) noexcept {
  for (operation* op = begun_.front(); op != nullptr;) {
    operation* next = begun_.next(*op);
    if (op->deadline() <= now) {
      op->retain();
      op->give_up(errc::timed_out);
      // Giving up may fail a connection and with it any operation, `next` among them. An operation
      // that has not ended has moved its deadline: else it would be the next for ever.
      next = begun_.front();
      op->release();
    }
    op = next;
  }
}

clock::time_point outstanding_operations::first_deadline() const noexcept {
  clock::time_point first = clock::time_point::max();
  for (operation* op = begun_.front(); op != nullptr; op = begun_.next(*op)) {
    first = std::min(first, op->deadline());
  }
  return first;
}

void outstanding_operations::cancel(const driven_connection* connection) noexcept {
  for_each(
      begun_, [connection](const operation& each) { return counts(each, connection); },
      [](operation& each) { each.give_up(errc::canceled); });
}

std::size_t outstanding_operations::count(const driven_connection* connection) const noexcept {
  std::size_t count = 0;
  for (operation* op = begun_.front(); op != nullptr; op = begun_.next(*op)) {
    if (counts(*op, connection)) ++count;
  }
  return count;
}

void outstanding_operations::fail(const driven_connection& connection,
                                  std::error_code why) noexcept {
  for_each(
      begun_, [&connection](const operation& each) { return each.connection() == &connection; },
      [why](operation& each) { each.connection_failed(why); });
}

}  // namespace ucx::detail
