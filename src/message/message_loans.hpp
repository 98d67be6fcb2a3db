// The messages of a worker that are read where they lie.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/intrusive_list.hpp"
#include "message/receive_operation.hpp"

namespace ucx::detail {

class worker_core;

/// Those that this worker's receives read, a part in each round and by turns; and the tokens of
/// those that its sends lend. Under the worker's lock.
class message_loans {
 public:
  explicit message_loans(worker_core& worker) noexcept : worker_(worker) {}
  message_loans(const message_loans&) = delete;
  message_loans& operator=(const message_loans&) = delete;

  /// This one reads its message where it lies, from the next round on; and no more.
  void borrow(receive_operation& receive) noexcept;
  void borrowed(receive_operation& receive) noexcept;
  /// Reads on, in turn, as much as a round may take. REQUIRES: one borrows.
  void read();

  /// Returns the token of the next message that is lent; it is never 0.
  std::uint64_t next_token() noexcept { return ++last_token_ == 0 ? ++last_token_ : last_token_; }

 private:
  worker_core& worker_;
  intrusive_list<receive_operation, borrowing_tag> borrowing_;
  std::uint64_t last_token_ = 0;
};

}  // namespace ucx::detail
