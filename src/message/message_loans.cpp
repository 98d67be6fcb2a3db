#include "message/message_loans.hpp"

#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// So many bytes of lent messages are read in a round: that takes a tenth of a millisecond. A
/// quarter of it would cost a tenth of the rate.
constexpr std::size_t most_borrowed = std::size_t{1} << 20U;

}  // namespace

void message_loans::borrow(receive_operation& receive) noexcept {
  borrowing_.push_back(receive);
  worker_.agenda().copies = true;
}

void message_loans::borrowed(receive_operation& receive) noexcept {
  borrowing_.remove(receive);
  worker_.agenda().copies = !borrowing_.empty();
}

void message_loans::read() {
  receive_operation& next = *borrowing_.front();
  if (next.read_loan(most_borrowed)) {
    borrowing_.remove(next);
    borrowing_.push_back(next);
  }
}

}  // namespace ucx::detail
