#include "region/remote/region_read.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "cuda/device_pointer.hpp"
#include "region/remote/remote_region_core.hpp"
#include "wire/digest.hpp"
#include "worker/worker_copy.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void region_read::begin(std::shared_ptr<remote_region_core> region, std::uint64_t offset,
                        std::span<std::byte> into, clock::time_point deadline, bool verify) {
  into_ = into;
  received_ = 0;
  pieces_.clear();
  part_ = 0;
  part_end_ = copier_ ? std::min(device_part, into.size()) : into.size();
  uncopied_ = 0;
  failure_.clear();
  verify_ = verify;
  unsealed_ = false;
  attempts_ = 0;
  damaged_ = {};
  enter(std::move(region), offset, into.size(), deadline);
}

void region_read::ask() { is_moving() ? move(into_, false) : ask_owner(); }

/// A step that begins at a copy's end has no caller that would catch bad_alloc.
template <class Step>
void region_read::or_give_up(Step step) noexcept {
  try {
    step();
  } catch (const std::bad_alloc&) {
    give_up_for(make_error_code(errc::no_memory));
  }
}

/// The bytes are the region's if the owner still lends the memory. Else the owner is asked, and
/// says what has become of it.
void region_read::moved(std::error_code outcome) {
  if (failure_) {  // given up meanwhile
    forget_mover();
    return complete(failure_);
  }
  const bool over = region_->path().was_moved(into_.size(), outcome);
  forget_mover();
  if (!over) return or_give_up([this] { ask_owner(); });
  leave();
  complete(outcome);
}

void region_read::ask_owner() {
  frame asked = question(opcode::read);
  asked.offset = offset_ + part_;
  asked.length = part_end_ - part_;
  if (verify_) asked.status = frame::with_digests;
  ++attempts_;
  send_question(asked);
}

/// Pieces come in any order: UCX promises none between messages.
bool region_read::was_asked_for(const frame& answer, std::size_t size) const noexcept {
  const std::size_t part = part_end_ - part_;
  return answer.length == size && size != 0 && answer.offset <= part &&
         size <= part - answer.offset && size <= part_end_ - received_;
}

std::span<std::byte> region_read::landing_of(const frame& answer, std::size_t size) noexcept {
  if (is_moving() || copier_ || answer.status != 0 || !was_asked_for(answer, size)) return {};
  return into_.subspan(part_ + static_cast<std::size_t>(answer.offset), size);
}

void region_read::answered(const frame& answer, std::span<const std::byte> payload) {
  arrival = nullptr;  // the carrier has let go of it
  if (is_moving()) return blame_peer("a read was answered that was not asked for");
  if (answer.code != opcode::data) return blame_peer("a read was answered by another frame");
  if (answer.status != 0) return fail_when_copied(status_error(answer.status));
  if (!was_asked_for(answer, payload.size()))
    return blame_peer("a read was answered with other bytes than it asked for");
  if (!pieces_.add(part_ + static_cast<std::size_t>(answer.offset), payload.size()))
    return blame_peer("a read was answered with the same bytes twice");
  std::byte* const into = into_.data() + part_ + answer.offset;
  if (copier_) {
    if (const std::error_code ec = copy_to_device(into, payload)) return fail_when_copied(ec);
  } else if (payload.data() != into) {
    std::memcpy(into, payload.data(), payload.size());
  }
  received_ += payload.size();
  if (verify_) check(answer);
  if (received_ != part_end_) return;
  copier_ ? ask_for_more() : arrived();
}

class region_read::piece_copy final : public worker_copy {
 public:
  piece_copy(region_read& owner, staging_buffer through)
      : worker_copy(owner.worker(), std::move(through)), owner_(owner) {
    into_device = true;
  }

 private:
  void arrived() override { owner_.copied(*this); }
  region_read& owner_;  // which abandons it before it goes
};

std::error_code region_read::copy_to_device(std::byte* into,
                                            std::span<const std::byte> payload) noexcept {
  try {
    staging_buffer through = worker().staging_shelf().take(payload.size());
    if (!through) return errc::no_memory;
    std::memcpy(through.get(), payload.data(), payload.size());
    auto copy = std::make_shared<piece_copy>(*this, std::move(through));
    copy->host = {copy->buffer.get(), payload.size()};
    copy->device = into;
    copy->after = after_;
    copies_.reserve(copies_.size() + 1);
    if (const std::error_code ec = copier_->start(copy)) return ec;
    copies_.push_back(std::move(copy));
    uncopied_ += payload.size();
    return {};
  } catch (const std::bad_alloc&) {
    return errc::no_memory;
  }
}

void region_read::copied(piece_copy& ended) {
  std::erase_if(copies_, [&](const auto& each) { return each.get() == &ended; });
  uncopied_ -= ended.host.size();
  if (ended.error || failure_) return fail_when_copied(ended.error);
  if (received_ == part_end_) or_give_up([this] { ask_for_more(); });
}

/// The caller's memory is the caller's again when no other piece is on its way there.
void region_read::fail_when_copied(std::error_code why) noexcept {
  if (!failure_) failure_ = why;
  leave();
  if (copies_.empty()) give_up_for(failure_);
}

/// All of a part has come.
void region_read::ask_for_more() {
  if (part_end_ == into_.size()) {
    if (copies_.empty()) arrived();
  } else if (uncopied_ <= most_uncopied) {
    part_ = part_end_;
    part_end_ += std::min(device_part, into_.size() - part_end_);
    ask_owner();
  }
}

/// Checks the copy, because the caller gets that.
void region_read::check(const frame& answer) {
  const std::span<std::byte> piece = into_.subspan(static_cast<std::size_t>(answer.offset),
                                                   static_cast<std::size_t>(answer.length));
  frame asked = question(opcode::read);
  asked.offset = offset_;
  const seal_state state = check_seal(answer, asked, piece);
  if (state == seal_state::none) unsealed_ = true;
  if (state == seal_state::damaged && damaged_.length == 0)
    damaged_ = {answer.offset, piece.size()};
}

void region_read::arrived() {
  const bool damaged = damaged_.length > 0;
  if (damaged && !unsealed_ && attempts_ < most_attempts) {
    received_ = 0;
    pieces_.clear();
    damaged_ = {};
    return ask_owner();
  }
  leave();
  if (unsealed_) return complete(errc::not_supported);
  complete(damaged ? make_error_code(errc::checksum_mismatch) : std::error_code());
}

std::string region_read::describe() const {
  std::string text = "read of " + region_question::describe();
  if (!done()) return text;  // what follows is still being written
  if (unsealed_) text += ", whose owner is of a version that sends no checksums";
  if (damaged_.length == 0) return text;
  const std::uint64_t begin = offset_ + damaged_.offset;
  return text + ", of which those from " + std::to_string(begin) + " to " +
         std::to_string(begin + damaged_.length - 1) + " arrived damaged";
}

void region_read::give_up_for(std::error_code why) noexcept {
  if (done()) return;
  leave();
  for (const std::shared_ptr<piece_copy>& each : copies_) each->abandon();
  copies_.clear();
  const std::error_code first = is_moving() && failure_ ? failure_ : why;
  if (stop_moving()) return complete(first);
  failure_ = first;
}

bool region_read::rebind(std::span<std::byte> into) noexcept {
  if (done() || received_ != 0 || arrival != nullptr || into.size() != into_.size()) return false;
  if (copier_ || is_moving() || !is_on_host(into)) return false;
  into_ = into;
  return true;
}

void region_read::recycle() noexcept {
  for (const std::shared_ptr<piece_copy>& each : copies_) each->abandon();
  copies_.clear();
  copier_.reset();
  after_.reset();
  region_.reset();
  worker().pool_of<region_read>().give_back(this);
}

}  // namespace ucx::detail
