#include "region/paths/plane_move.hpp"

#include <new>
#include <optional>
#include <utility>

#include "base/if_there_is_memory.hpp"
#include "base/inbox_task.hpp"
#include "ucp/status.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

std::string words_of_refusal(bool into_owner, bool with_device, ucs_status_t status) {
  std::string text = "UCX refuses to ";
  text += into_owner ? "write" : "read";
  text += " the owner's device memory by RMA, ";
  text += into_owner ? "out of " : "into ";
  text += with_device ? "a device's memory here (" : "the host's memory here (";
  return text + words(status) +
         "): adapters reach memory of a device by the kernel module nvidia_peermem, or by dma-buf, "
         "on each host that has such memory";
}

}  // namespace

bool plane_state::is_refusal(ucs_status_t status) noexcept {
  return status == UCS_ERR_CANCELED || status == UCS_ERR_UNSUPPORTED ||
         status == UCS_ERR_UNREACHABLE || status == UCS_ERR_INVALID_PARAM;
}

bool plane_state::may_move(bool into_owner, bool with_device) const noexcept {
  return !lost_.load() && !refused_[into_owner ? 1 : 0][with_device ? 1 : 0].load();
}

void plane_state::refused(bool into_owner, bool with_device, ucs_status_t status) noexcept {
  if (refused_[into_owner ? 1 : 0][with_device ? 1 : 0].exchange(true)) return;
  if (into_owner != is_read_ && !with_device) open_.store(false);
  tell(if_there_is_memory([&] { return words_of_refusal(into_owner, with_device, status); }));
}

void plane_state::failed(bool into_owner, bool with_device, ucs_status_t status,
                         ucs_status_t lost) noexcept {
  if (lost == UCS_OK) {
    // Else it is of this access alone, as by memory that can not be registered.
    if (is_refusal(status)) refused(into_owner, with_device, status);
    return;
  }
  if (lost_.exchange(true)) return;
  open_.store(false);
  tell(if_there_is_memory([&] {
    return "the connection for the owner's device memory was lost (UCX: " + words(lost) + ")";
  }));
}

void plane_state::not_opened(ucs_status_t status) noexcept {
  tell(if_there_is_memory(
      [&] { return "the first byte by RMA could not be read (UCX: " + words(status) + ")"; }));
}

void plane_state::lacks_plane(std::string why) noexcept {
  lost_.store(true);
  open_.store(false);
  complain(std::move(why));
}

void plane_state::tell(std::string why) noexcept {
  log_->write(log_level::warning, why);
  complain(std::move(why));
}

void plane_state::complain(std::string why) noexcept {
  const std::lock_guard guard(mutex_);
  // The state that decides the method goes first.
  if (complaint_.empty() || !open_.load()) complaint_ = std::move(why);
}

std::string plane_state::complaint() const {
  const std::lock_guard guard(mutex_);
  return complaint_;
}

class plane_move::transfer final : public plane_transfer,
                                   public inbox_task,
                                   public std::enable_shared_from_this<transfer> {
 public:
  transfer(plane_move& owner, worker_core& worker)
      : owner_(&owner), worker_(worker.weak_from_this()) {}

  void leave() noexcept { owner_ = nullptr; }
  void run(worker_core&) override {
    if (owner_ != nullptr) std::exchange(owner_, nullptr)->ended(status());
  }

 private:
  void ended() noexcept override {
    if (const std::shared_ptr<worker_core> worker = worker_.lock()) {
      worker->hand_over(shared_from_this());
    }
  }

  plane_move* owner_;  // under the worker's lock
  const std::weak_ptr<worker_core> worker_;
};

plane_move::plane_move(worker_core& worker, way there, std::shared_ptr<const cuda_context> context,
                       std::shared_ptr<const stream_mark> after)
    : worker_(worker),
      there_(std::move(there)),
      context_(std::move(context)),
      after_(std::move(after)) {}

plane_move::~plane_move() {
  if (!let_go()) running_->leave();
}

bool plane_move::let_go() noexcept {
  if (!running_) return true;
  if (there_.plane->is_inherited() || running_->is_over()) {
    running_->leave();
    running_.reset();
    return true;
  }
  if (std::exchange(is_given_up_, true)) return false;
  running_->abandon();
  there_.plane->look();
  return false;
}

void plane_move::look() noexcept {
  if (!running_ || !running_->is_over()) return;
  running_->leave();
  ended(running_->status());
}

std::error_code plane_move::start(user& told, std::uint64_t offset, std::span<std::byte> bytes,
                                  bool into_owner) {
  user_ = &told;
  try {
    auto made = std::make_shared<transfer>(*this, worker_);
    made->key = there_.key;
    made->address = there_.address + offset;
    made->local = bytes;
    made->into_peer = into_owner;
    made->context = context_;
    made->after = after_;
    if (const std::error_code ec = there_.plane->start(made)) {
      look_for_plane();
      return ec;
    }
    running_ = std::move(made);
    return {};
  } catch (const std::bad_alloc&) {
    return errc::no_memory;
  }
}

/// Returns whether UCX has made what it needs here.
bool plane_move::look_for_plane() const {
  std::optional<failure> why_not = there_.plane->why_not_made();
  if (why_not) there_.state->lacks_plane(std::move(why_not->text));
  return !why_not;
}

void plane_move::ended(ucs_status_t status) {
  const std::shared_ptr<transfer> over = std::exchange(running_, nullptr);
  if (status == UCS_OK) {
    there_.state->moved(over->into_peer, context_ != nullptr);
    return user_->moved({});
  }
  const ucs_status_t lost = there_.key->peer().lost();
  // One that was given up tells nothing of the way, unless its connection was lost.
  if (look_for_plane() && (!is_given_up_ || lost != UCS_OK)) {
    there_.state->failed(over->into_peer, context_ != nullptr, status, lost);
  }
  if (over->lacks_work()) return user_->moved(errc::io_error);
  const bool may_come_later = over->into_peer && over->was_taken();
  user_->moved(may_come_later ? errc::connection_reset : errc::canceled);
}

}  // namespace ucx::detail
