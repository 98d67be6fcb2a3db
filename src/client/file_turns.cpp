#include "client/file_turns.hpp"

#include <utility>

#include "base/clock.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

/// Ends when the turn has come. It has no deadline: who waits has one.
class file_turns::waiting final : public operation, public list_hook<turn_tag> {
 public:
  explicit waiting(file_turn& awaited) noexcept : awaited_(awaited) {}

  void begin(worker_core& worker) {
    operation::start(worker.shared_from_this(), clock::time_point::max());
    awaited_.of_->waiting_.push_back(*this);
  }
  file_turn& awaited() const noexcept { return awaited_; }
  void come() noexcept { complete({}); }
  void give_up(errc why) noexcept override {
    if (done()) return;
    awaited_.of_->waiting_.remove(*this);
    complete(make_error_code(why));
  }
  void connection_failed(std::error_code) noexcept override {}  // it has none
  bool was_given_up() const noexcept override { return done() && error(); }
  std::string describe() const override { return "waiting for what was started before"; }

 protected:
  void recycle() noexcept override { delete this; }

 private:
  file_turn& awaited_;  // until it is done
};

bool file_turns::are_taken(file_change wanted) const noexcept {
  if (resizes_ > 0 || !waiting_.empty()) return true;
  return commits_ > 0 && wanted != file_change::none;
}

void file_turns::begin(file_turn& next) noexcept {
  next.has_come_ = true;
  if (next.what_ == file_change::name) ++commits_;
  if (next.what_ == file_change::size) ++resizes_;
}

/// Those that begin may end, and so come here again. The outermost call lets all of them in: each
/// would be one recursion deeper.
void file_turns::ended(file_change what) noexcept {
  if (what == file_change::name) --commits_;
  if (what == file_change::size) --resizes_;
  if (std::exchange(lets_in_, true)) return;
  while (waiting* const first = waiting_.front()) {
    file_turn& next = first->awaited();
    if (resizes_ > 0 || (commits_ > 0 && next.what_ != file_change::none)) break;
    waiting_.remove(*first);
    begin(next);
    first->come();
  }
  lets_in_ = false;
}

request file_turn::wait(worker_core& worker) {
  if (!of_->are_taken(what_)) {
    of_->begin(*this);
    return {};
  }
  file_turns::waiting& made = *std::make_unique<file_turns::waiting>(*this).release();
  made.begin(worker);
  return core_access::make_request(&made);
}

void file_turn::leave() noexcept {
  if (!std::exchange(has_come_, false)) return;
  const std::shared_ptr<file_turns> kept = of_;
  kept->ended(what_);
}

}  // namespace ucx::detail
