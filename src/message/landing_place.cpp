#include "message/landing_place.hpp"

#include <new>
#include <utility>

#include "memory/buffer_home.hpp"
#include "memory/buffer_pool_core.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

std::error_code landing_place::begin(worker_core& worker, std::span<std::byte> into) {
  into_.assign(into);
  return into_.find_devices(worker.copiers());
}

std::error_code landing_place::begin(worker_core& worker, const receive_place& into) {
  if (into.runs.empty()) {
    into_.assign(into.only);
  } else {
    into_.assign(into.runs);
  }
  const std::error_code unreachable = into_.find_devices(worker.copiers());
  parts_ = into.parts;
  made_ = parts_ != nullptr ? &parts_->memory_ : into.made;
  pool_ = into.pool;
  most_ = pool_ ? pool_->options().size : into.most;
  worker_ = &worker;
  return unreachable;
}

void landing_place::end() noexcept {
  made_ = nullptr;
  parts_ = nullptr;
  if (into_.on_device()) into_.clear();  // which lets go of who copies
}

bool landing_place::find_buffer(std::uint64_t length) {
  if (buffer_ || length > most_) return true;
  buffer_ = pool_->take_for(*this);
  return static_cast<bool>(buffer_);
}

void landing_place::leave_line() noexcept {
  if (move_only_handler<> due = pool_->leave(*this)) worker_->queue_handler(std::move(due));
}

void landing_place::give_up_pool() noexcept {
  give_back(std::move(buffer_));
  leave_line();
  pool_.reset();
}

/// Makes the memory for a message of this length.
std::error_code landing_place::make(std::uint64_t length) {
  if (length > most_) return errc::message_truncated;
  try {
    if (parts_ != nullptr) parts_->parts_.clear();  // of the memory that goes
    buffer made = pool_ ? std::move(buffer_) : buffer(static_cast<std::size_t>(length));
    made.resize(static_cast<std::size_t>(length));
    give_back(std::exchange(*made_, std::move(made)));
  } catch (const std::bad_alloc&) {
    return errc::no_memory;
  }
  into_.assign(made_->bytes());
  return {};
}

/// A function of the user's has to wait until no lock is held.
void landing_place::give_back(buffer&& unwanted) noexcept {
  if (move_only_handler<> due = buffer_home::give_back(std::move(unwanted))) {
    worker_->queue_handler(std::move(due));
  }
}

void landing_place::buffer_came() noexcept { worker_->buffer_came(); }

}  // namespace ucx::detail
