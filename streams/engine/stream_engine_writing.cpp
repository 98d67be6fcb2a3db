// What a stream does with bytes that are written to it. Apart from stream_engine.cpp, which reads,
// seeks and closes.
#include <algorithm>

#include "engine/stream_engine.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_copy.hpp"

namespace ucx::detail {

void stream_engine::note_lost() noexcept {
  if (grows_) lost_.note_lost(position_, error_, failure_);
}

void stream_engine::note_taken(std::uint64_t begin) noexcept {
  size_ = std::max(size_, position_);
  lost_.note_written(begin, position_);
}

std::size_t stream_engine::put_capacity() const noexcept {
  return static_cast<std::size_t>(
      std::min<std::uint64_t>(put_.memory.size(), room_from(put_.offset)));
}

stream_engine::outcome stream_engine::make_room() noexcept {
  const outcome ended = attempt([this] {
    begin_writing();
    open_put_area();
    return outcome::done;
  });
  if (ended == outcome::failed) note_lost();  // who asked has a byte to write
  return ended;
}

stream_engine::outcome stream_engine::write_out() noexcept {
  return attempt([this] {
    begin_writing();
    send_put_area();
    return outcome::done;
  });
}

std::size_t stream_engine::write(std::span<const std::byte> from) noexcept {
  std::uint64_t start = position_;
  const outcome ended = attempt([&] {
    begin_writing();
    start = position_;
    check_place(from);
    const auto fitting = from.first(
        static_cast<std::size_t>(std::min<std::uint64_t>(from.size(), room_from(position_))));
    if (fitting.size() < pool_.block_size()) {
      fill_put_area(fitting);
    } else {
      write_directly(fitting);
    }
    if (fitting.size() < from.size()) refuse(errc::no_space, "writing beyond the end of");
    return outcome::done;
  });
  if (ended == outcome::done) return from.size();
  if (!from.empty()) note_lost();
  return position_ < start ? 0 : std::min<std::size_t>(from.size(), position_ - start);
}

void stream_engine::begin_writing() {
  require(std::ios_base::out, "writing");
  writes_.check();
  if (state_ == state::writing) return;
  if ((mode_ & std::ios_base::app) != 0) position_ = size_;
  // What was read ahead would be older than what is written now.
  reads_.drop();
  drop_get_area();
  if (position_ != put_.end()) send_put_area();
  if (put_.length == 0) put_.offset = position_;
  state_ = state::writing;
}

void stream_engine::open_put_area() {
  if (put_.memory && put_.length < put_capacity()) return;
  send_put_area();
  if (position_ >= limit_) refuse(errc::no_space, "writing beyond the end of");
  if (!put_.memory) put_.memory = pool_.take(writes_.flow().piece());
  put_.bytes = put_.memory.get();
}

void stream_engine::send_put_area() {
  if (put_.length == 0) return;
  regain_source();
  writes_.send(put_.offset, put_.memory, put_.length);
  put_.offset = put_.end();
  put_.length = 0;
}

void stream_engine::fill_put_area(std::span<const std::byte> from) {
  while (!from.empty()) {
    open_put_area();
    const std::size_t copied = std::min(from.size(), put_capacity() - put_.length);
    copy_memory(put_.memory.get() + put_.length, from.data(), copied, copying_);
    put_.length += copied;
    position_ += copied;
    note_taken(position_ - copied);
    from = from.subspan(copied);
  }
}

void stream_engine::write_directly(std::span<const std::byte> from) {
  send_put_area();
  regain_source();
  writes_.send_direct(position_, from);
  position_ += from.size();
  note_taken(position_ - from.size());
  put_.offset = position_;
}

void stream_engine::make_all_visible() {
  writes_.flush();
  visible_size_ = size_;
}

}  // namespace ucx::detail
