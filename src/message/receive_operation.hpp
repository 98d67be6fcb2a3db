// A receive of a message: of one with a tag, or of one that was taken by hand.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>

#include "base/clock.hpp"
#include "base/intrusive_list.hpp"
#include "message/cma_read.hpp"
#include "message/expected_message.hpp"
#include "message/landing_place.hpp"
#include "message/rma_read.hpp"
#include "ucx/receive_target.hpp"
#include "wire/parcel.hpp"
#include "worker/operation.hpp"

namespace ucx::detail {

struct arrived_message;
class message_link;
struct posted_tag {};
struct lacking_tag {};
struct borrowing_tag {};

/// UCX has the memory only of one that fetches its message by RMA. Then giving up waits until it
/// has not, or ends the connection. Else it costs nothing: data that comes later is dropped, and
/// refused. One into a buffer of a pool takes that when it takes its message; without one it lets
/// messages wait.
///
/// How far it has come:
///
///     step    | in which lists
///     begun   | none: it has just begun, or its message is here, and it takes it
///     waiting | of those that wait for a message
///     lacking | the same, and of those that lack a buffer: its message is here
///     held_up | of those that lack a buffer: its message was taken by hand
///     coming  | of those whose message comes in pieces
///     reading | the same, and of those that read their message where it lies
///     fetching| as coming: UCX has a part of its memory
///     over    | none, for good
///
///     from    | to      | when
///     over    | begun   | `begin()`: another life
///     begun   | waiting | nobody has sent its message yet
///     waiting | begun   | its message is here
///     begun,  | lacking | its message is here, and no buffer of its pool
///     waiting |         |
///     lacking | waiting | there is a buffer; or it needs none, as somebody else has the message
///     begun   | held_up | the message that the program holds has a length, and the pool no buffer
///     held_up | begun   | there is a buffer, or the message is given up
///     begun   | coming  | its message was announced, and it asks for it
///     coming  | reading | its message is lent to it
///     reading | coming  | it has read all of it; or could not, and the sender sends it
///     coming  | fetching| the hardware reads its message where it lies
///     fetching| coming  | UCX has nothing of it any more
///     begun, waiting, coming, reading | over | it ends
class receive_operation final : public operation,
                                public list_hook<posted_tag>,
                                public list_hook<lacking_tag>,
                                public list_hook<borrowing_tag>,
                                private rma_read::user {
 public:
  enum class source { tagged, taken };

  /// Starts, without looking for anything. Of one peer, or (no `from`) of any.
  /// `held` keeps the worker. It is done already where its memory is a device's that can not be
  /// reached.
  void begin(worker_core& worker, kept_alive&& held, clock::time_point deadline, source kind,
             const tag_match& wanted, std::span<std::byte> into);
  void begin(worker_core& worker, kept_alive&& held, clock::time_point deadline, source kind,
             const tag_match& wanted, const receive_place& into);

  const tag_match& wanted() const noexcept { return wanted_; }
  const endpoint_core* wanted_from() const noexcept { return from_; }
  /// It is in the list of those that wait for a message; and it is no more.
  void wait_for_message() noexcept { reach(step::waiting); }
  void matched() noexcept { reach(step::begun); }

  /// Returns whether there is a place for a message of this length, or never will be. Else it waits
  /// for a buffer, as long as it `lacks_buffer()`; its worker tries again when there is one.
  bool find_place(std::uint64_t length) { return place_.find(length); }
  bool lacks_buffer() const noexcept { return step_ == step::lacking || step_ == step::held_up; }
  /// It is in the list of those who do; `held` is the message of one that was taken by hand.
  void wait_for_buffer(arrived_message* held) noexcept;
  arrived_message* held() const noexcept { return held_; }
  /// It waits for a message instead; of one that was taken by hand, for nothing.
  void needs_no_buffer() noexcept;

  /// Takes a message that is here, or asks for it; ends where it does not fit.
  void take(arrived_message& found);
  /// Takes one that came whole, and wants no answer.
  void take(std::uint64_t tag, std::span<const std::byte> payload);
  /// As `take`, of one that came just now, and that was not kept. Of one that is lent, `payload` is
  /// the offer.
  void take(endpoint_core& from, const parcel& said, std::span<const std::byte> payload);
  /// Reads on where the message lies, `most` bytes at most; returns whether more is left there.
  bool read_loan(std::size_t most);
  /// A piece of the message that it asked for.
  void piece(std::uint64_t offset, std::span<const std::byte> payload);
  /// The sender will send no more of it, or nothing.
  void withdrawn(std::error_code why) noexcept;
  std::uint64_t message_number() const noexcept { return message_.number(); }

  void give_up(errc why) noexcept override { give_up_for(make_error_code(why)); }
  void connection_failed(std::error_code why) noexcept override;
  bool awaits_peer() const noexcept override { return true; }
  message_info received() const noexcept override { return message_.info(); }
  std::string describe() const override;
  request_attributes attributes() const override {
    return {
        .kind = operation_kind::receive, .size = message_.info().length, .memory = place_.kind()};
  }

 protected:
  void recycle() noexcept override;

 private:
  enum class step : unsigned { begun, waiting, lacking, held_up, coming, reading, fetching, over };
  template <class... Step>
  static constexpr unsigned any_of(Step... steps) noexcept {
    return ((1U << static_cast<unsigned>(steps)) | ...);
  }
  /// Returns from where it may come to `next`, as `any_of`: the table above.
  static constexpr unsigned before(step next) noexcept {
    switch (next) {
      case step::begun:
        return any_of(step::over, step::waiting, step::held_up);
      case step::waiting:
        return any_of(step::begun, step::lacking);
      case step::lacking:
        return any_of(step::begun, step::waiting);
      case step::held_up:
        return any_of(step::begun);
      case step::coming:
        return any_of(step::begun, step::reading, step::fetching);
      case step::reading:
      case step::fetching:
        return any_of(step::coming);
      case step::over:
        return any_of(step::begun, step::waiting, step::coming, step::reading);
    }
    return 0;
  }
  void reach(step next) noexcept {
    assert((before(next) & any_of(step_)) != 0);
    step_ = next;
  }
  /// Returns whether its message is asked for under a number, and its connection knows it.
  bool is_coming() const noexcept {
    return step_ == step::coming || step_ == step::reading || step_ == step::fetching;
  }

  void begin(worker_core& worker, kept_alive&& held, clock::time_point deadline, source kind,
             const tag_match& wanted, std::error_code unreachable) noexcept;
  bool borrow(message_link& link, const parcel& said, std::span<const std::byte> offer);
  bool fetch(message_link& link, const parcel& said, std::span<const std::byte> offer);
  void part_ended() noexcept override;
  void fetched() noexcept;
  void stop_fetching(std::error_code why) noexcept;
  void linger() noexcept;
  void give_up_for(std::error_code why) noexcept;
  void leave_lists() noexcept;
  void finish(std::error_code outcome) noexcept;

  source source_ = source::tagged;
  step step_ = step::over;
  tag_match wanted_ = tag_match::any();
  const endpoint_core* from_ = nullptr;
  landing_place place_;
  arrived_message* held_ = nullptr;  // while it is held up
  expected_message message_;
  std::uint64_t id_ = 0;  // under which its message comes
  cma_read loan_;
  rma_read rma_;
  std::error_code ending_;  // of one that was given up while it fetched
};

}  // namespace ucx::detail
