#include "connection/staged_transfers.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "worker/ucx_callback.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

bool staged_transfer::move_read(std::span<std::byte> into) noexcept {
  if (lands_in_ || into_.empty() || into.size() != into_.size() || !in_order_) return false;
  std::memmove(into.data(), into_.data(), ended_);
  into_ = into;
  return true;
}

void staged_transfers::add(staged_transfer& started) noexcept {
  started.posted_ = 0;
  started.ended_ = 0;
  started.in_order_ = true;
  waiting_.push_back(started);
  post();
}

void staged_transfers::leave(staged_transfer& given_up) noexcept {
  if (static_cast<list_hook<staged_turn_tag>&>(given_up).linked()) waiting_.remove(given_up);
  for (staged_piece* each = in_flight_.front(); each != nullptr; each = in_flight_.next(*each)) {
    if (each->owner == &given_up) each->owner = nullptr;
  }
}

void staged_transfers::post() noexcept {
  if (posting_) return;  // an end within the call came back here
  posting_ = true;
  while (staged_transfer* const first = waiting_.front()) {
    if (first->posted_ < first->size()) {
      try {
        if (!post_piece(*first)) break;
      } catch (const std::bad_alloc&) {
        fail(*first, UCS_ERR_NO_MEMORY);
      }
      continue;
    }
    waiting_.remove(*first);
    if (first->ended_ == first->size()) first->staged_ended(UCS_OK);
  }
  posting_ = false;
}

/// Returns whether there was room for one.
bool staged_transfers::post_piece(staged_transfer& of) {
  if (connection_.handle() == nullptr) return false;  // it has failed, which ends them
  const std::size_t longest_of_reads = of.lands_in_ ? longest_landing : longest_read;
  const std::size_t longest = of.from_.empty() ? longest_of_reads : longest_write;
  const std::size_t size = std::min(of.size() - of.posted_, longest);
  const std::size_t kind = kind_of(of, size);
  const bool is_whole = kind != 0 && size == longest_read;
  const clock::time_point now = is_whole ? connection_.worker().api().now() : clock::time_point();
  const std::size_t most = is_whole ? most_now(now) : most_bytes;
  if (in_flight_.size() >= most_pieces || bytes_ + counted(kind, size) > most) return false;
  staged_piece& piece = take(kind);
  piece.alone_since = in_flight_.empty() ? now : clock::time_point();
  piece.owner = &of;
  piece.keeps = of.keeps_;
  piece.lands_in = of.lands_in_;
  piece.offset = of.posted_;
  piece.size = size;
  of.posted_ += size;
  bytes_ += counted(kind, size);
  in_flight_.push_back(piece);
  connection_.transfer_started();
  const ucs_status_ptr_t started = start(piece, of);
  if (!UCS_PTR_IS_PTR(started)) piece_ended(piece, UCS_PTR_RAW_STATUS(started));
  return true;
}

/// Returns how many bytes there may be with a further whole piece of a read.
std::size_t staged_transfers::most_now(clock::time_point now) const noexcept {
  return window_.is_old(now) ? longest_read : window_.bytes();
}

std::size_t staged_transfers::kind_of(const staged_transfer& of, std::size_t size) noexcept {
  if (of.lands_in_) return 0;
  std::size_t kind = 1;
  while (rooms[kind] < size) ++kind;
  return kind;
}

staged_piece& staged_transfers::take(std::size_t kind) {
  if (staged_piece* const idle = idle_[kind].front()) {
    idle_[kind].remove(*idle);
    return *idle;
  }
  if (memory_ + rooms[kind] > most_memory) free_idle();
  auto made = std::make_unique<staged_piece>();
  made->line = this;
  made->kind = kind;
  if (kind != 0) made->bytes = std::make_unique_for_overwrite<std::byte[]>(rooms[kind]);
  all_.push_back(std::move(made));
  memory_ += rooms[kind];
  return *all_.back();
}

void staged_transfers::free_idle() noexcept {
  for (auto& idle : idle_) {
    while (staged_piece* const each = idle.front()) {
      idle.remove(*each);
      memory_ -= rooms[each->kind];
    }
  }
  std::erase_if(all_, [](const auto& each) { return !each->linked(); });
}

ucs_status_ptr_t staged_transfers::start(staged_piece& piece, const staged_transfer& of) {
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = &staged_transfers::on_done;
  params.user_data = &piece;
  ucp_api& api = connection_.worker().api();
  const std::uint64_t there = of.address_ + piece.offset;
  if (of.from_.empty()) {
    std::byte* const into = piece.lands_in ? of.into_.data() + piece.offset : piece.bytes.get();
    return api.get_nbx(connection_.handle(), into, piece.size, there, of.key_of_turn_, &params);
  }
  has_written_ = true;
  std::memcpy(piece.bytes.get(), of.from_.data() + piece.offset, piece.size);
  return api.put_nbx(connection_.handle(), piece.bytes.get(), piece.size, there, of.key_of_turn_,
                     &params);
}

void staged_transfers::on_done(void* request, ucs_status_t status, void* argument) {
  staged_piece& piece = *static_cast<staged_piece*>(argument);
  staged_transfers& line = *piece.line;
  const ucx_callback scope(line.connection_.worker(), request);
  line.piece_ended(piece, status);
  line.post();
}

void staged_transfers::piece_ended(staged_piece& piece, ucs_status_t status) noexcept {
  staged_transfer* const owner = std::exchange(piece.owner, nullptr);
  if (status == UCS_OK && piece.alone_since != clock::time_point()) {
    const clock::time_point now = connection_.worker().api().now();
    window_.measured(now - piece.alone_since, now);
  }
  if (owner != nullptr && status == UCS_OK) {
    if (piece.bytes && owner->from_.empty()) {
      std::memcpy(owner->into_.data() + piece.offset, piece.bytes.get(), piece.size);
    }
    if (piece.offset != owner->ended_) owner->in_order_ = false;
    owner->ended_ += piece.size;
  }
  give_back(piece);
  if (owner == nullptr) return;
  if (status != UCS_OK) return fail(*owner, status);
  // In its turn, `post()` says so.
  const bool waits = static_cast<list_hook<staged_turn_tag>&>(*owner).linked();
  if (!waits && owner->ended_ == owner->size()) owner->staged_ended(UCS_OK);
}

void staged_transfers::give_back(staged_piece& piece) noexcept {
  in_flight_.remove(piece);
  bytes_ -= counted(piece.kind, piece.size);
  idle_[piece.kind].push_front(piece);  // still in the processor's cache
  const std::shared_ptr<const void> kept = std::move(piece.keeps);
  const std::shared_ptr<const void> landed_in = std::move(piece.lands_in);
  connection_.transfer_ended();
}

void staged_transfers::fail(staged_transfer& failed, ucs_status_t why) noexcept {
  leave(failed);
  failed.staged_ended(why);
}

}  // namespace ucx::detail
