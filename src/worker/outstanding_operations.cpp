#include "worker/outstanding_operations.hpp"

#include <algorithm>

#include "ucx/error.hpp"
#include "worker/driven_connection.hpp"

namespace ucx::detail {
namespace {

/// Returns whether it is an operation of a user's, over `connection` if there is one.
bool counts(const operation& started, const driven_connection* connection) noexcept {
  return !started.is_own() && (connection == nullptr || started.connection() == connection);
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
  for (operation* op = begun_.front(); op != nullptr;) {
    operation* next = begun_.next(*op);
    op->retain();
    if (next != nullptr) next->retain();
    if (counts(*op, connection)) op->give_up(errc::canceled);
    // Several may be one, and end together.
    const bool ended = next != nullptr && next->done();
    op->release();
    if (next != nullptr) next->release();
    op = ended ? begun_.front() : next;
  }
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
  for (operation* op = begun_.front(); op != nullptr;) {
    operation* next = begun_.next(*op);
    if (op->connection() == &connection) op->connection_failed(why);
    op = next;
  }
}

}  // namespace ucx::detail
