#include "region/paths/driver_move.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "cuda/device_pointer.hpp"
#include "ucx/error.hpp"
#include "worker/worker_copy.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Both ends and what is between them, or it is memory that the driver may have to let go of.
memory_kind kind_of(std::span<const std::byte> bytes) noexcept {
  const memory_kind first = place_of(bytes.data()).kind;
  if (is_copied_by_driver(first)) return first;
  const bool pinned = first == memory_kind::cuda_pinned &&
                      place_of(&bytes.back()).kind == memory_kind::cuda_pinned &&
                      is_of_one_allocation(bytes);
  return pinned ? first : memory_kind::host;
}

}  // namespace

class driver_move::piece_copy final : public worker_copy {
 public:
  piece_copy(driver_move& owner, staging_buffer through, owners_memory there, std::uint64_t offset)
      : worker_copy(owner.worker_, std::move(through)),
        owner_(owner),
        there_(std::move(there)),
        offset_(offset) {
    if (!buffer) staging = nullptr;
  }

  std::span<std::byte> bytes;  // the user's

 private:
  std::error_code prepare() noexcept override {
    if (!there_.device) return {};
    std::byte* const begin = there_.device->open();
    if (begin == nullptr) return errc::not_supported;
    device = begin + offset_;
    return {};
  }
  void copied() noexcept override { there_ = {}; }
  void arrived() override { owner_.ended(*this); }

  driver_move& owner_;  // which abandons it before it goes
  owners_memory there_;
  const std::uint64_t offset_;
};

driver_move::driver_move(worker_core& worker, std::shared_ptr<device_copier> copier,
                         owners_memory there, std::shared_ptr<const stream_mark> after)
    : worker_(worker),
      copier_(std::move(copier)),
      there_(std::move(there)),
      after_(std::move(after)) {}

driver_move::~driver_move() {
  for (const std::shared_ptr<piece_copy>& each : running_) each->abandon();
}

std::error_code driver_move::start(user& told, std::uint64_t offset, std::span<std::byte> bytes,
                                   bool into_owner) {
  user_ = &told;
  offset_ = offset;
  bytes_ = bytes;
  kind_ = kind_of(bytes);
  into_owner_ = into_owner;
  failure_ = start_more();
  return running_.empty() ? failure_ : std::error_code();
}

std::error_code driver_move::start_more() {
  while (started_ < bytes_.size() && running_.size() < most_begun) {
    const std::size_t left = bytes_.size() - started_;
    const std::size_t size =
        kind_ == memory_kind::host ? std::min(left, worker_.context().answer_piece()) : left;
    if (const std::error_code ec = start_piece(size)) return ec;
  }
  return {};
}

std::error_code driver_move::start_piece(std::size_t size) {
  try {
    staging_buffer through;
    if (kind_ == memory_kind::host) {
      through = worker_.staging_shelf().take(size);
      if (!through) return errc::no_memory;
    }
    const std::span<std::byte> part = bytes_.subspan(started_, size);
    const std::uint64_t at = offset_ + started_;
    const auto copy = std::make_shared<piece_copy>(*this, std::move(through), there_, at);
    copy->bytes = part;
    copy->after = after_;
    if (there_.device) {
      copy->into_device = into_owner_;
      copy->within_devices = is_copied_by_driver(kind_);
      if (copy->buffer && into_owner_) std::memcpy(copy->buffer.get(), part.data(), size);
      copy->host = copy->buffer ? std::span(copy->buffer.get(), size) : part;
    } else {
      copy->into_device = !into_owner_;
      copy->device = part.data();
      copy->host = {there_.host + at, size};
    }
    running_.push_back(copy);
    if (const std::error_code ec = copier_->start(copy)) {
      running_.pop_back();
      return ec;
    }
    started_ += size;
    return {};
  } catch (const std::bad_alloc&) {
    return errc::no_memory;
  }
}

void driver_move::ended(piece_copy& piece) {
  if (!piece.error && piece.buffer && !into_owner_) {
    std::memcpy(piece.bytes.data(), piece.buffer.get(), piece.bytes.size());
  }
  std::erase_if(running_, [&](const auto& each) { return each.get() == &piece; });
  if (!failure_) failure_ = piece.error;
  if (!failure_) failure_ = start_more();
  if (running_.empty()) user_->moved(failure_);
}

}  // namespace ucx::detail
