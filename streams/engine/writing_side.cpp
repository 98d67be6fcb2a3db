#include "engine/writing_side.hpp"

#include <utility>

#include "ucx/error.hpp"
#include "ucx/memory_resources.hpp"

namespace ucx::detail {

void writing_side::begin() {
  if (source_.position() != area_end()) send_area();
  if (used_ == 0) begin_ = source_.position();
}

void writing_side::open_area() {
  if (area_ && used_ < capacity()) return;
  send_area();
  if (source_.position() >= source_.limit()) {
    source_.refuse(errc::no_space, "writing beyond the end of");
  }
  if (!area_) area_ = pool_.take(writes_.flow().piece());
}

void writing_side::send_area() {
  if (used_ == 0) return;
  regain_source();
  writes_.send(begin_, area_, used_);
  begin_ = area_end();
  used_ = 0;
}

void writing_side::write(std::span<const std::byte> from) {
  const auto fitting = from.first(static_cast<std::size_t>(
      std::min<std::uint64_t>(from.size(), source_.room_from(source_.position()))));
  if (fitting.size() < pool_.block_size()) {
    fill_area(fitting);
  } else {
    write_directly(fitting);
  }
  if (fitting.size() < from.size()) source_.refuse(errc::no_space, "writing beyond the end of");
}

void writing_side::fill_area(std::span<const std::byte> from) {
  while (!from.empty()) {
    open_area();
    const std::size_t copied = std::min(from.size(), capacity() - used_);
    copy_memory(area_.get() + used_, from.data(), copied, copying_);
    used_ += copied;
    source_.advance(copied);
    note_taken(source_.position() - copied);
    from = from.subspan(copied);
  }
}

void writing_side::write_directly(std::span<const std::byte> from) {
  send_area();
  regain_source();
  writes_.send_direct(source_.position(), from);
  source_.advance(from.size());
  note_taken(source_.position() - from.size());
  begin_ = source_.position();
}

/// Missing writes are told of before anything else is done. Nothing was read ahead: there is
/// something to write.
void writing_side::regain_source() {
  if (!source_.is_lost()) return;
  writes_.check();
  source_.regain();
}

void writing_side::rewind() {
  const std::uint64_t unsent = used_ > 0 ? begin_ : source_.position();
  source_.move_to(std::min(source_.size(), writes_.rewind(unsent)));
  pool_.give_back(std::move(area_));
  used_ = 0;
  source_.shrink_to(std::max(writes_.confirmed_end(), source_.position()));
}

void writing_side::free_area() noexcept {
  area_ = block();
  begin_ = 0;
  used_ = 0;
}

}  // namespace ucx::detail
