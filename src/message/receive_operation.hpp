// A receive: of a message with a tag, of one that was taken by hand, or from the byte stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "base/clock.hpp"
#include "base/intrusive_list.hpp"
#include "memory/buffer_waiter.hpp"
#include "message/byte_runs.hpp"
#include "message/cma_read.hpp"
#include "ucx/buffer.hpp"
#include "ucx/message_parts.hpp"
#include "ucx/tag_match.hpp"
#include "wire/parcel.hpp"
#include "worker/operation.hpp"

namespace ucx::detail {

struct arrived_message;
class message_link;
class buffer_pool_core;
struct posted_tag {};
struct lacking_tag {};
struct borrowing_tag {};

/// Where a receive puts what it gets.
struct receive_target {
  std::span<const std::span<std::byte>> runs = {};
  std::span<std::byte> only = {};               ///< Where there are no `runs`.
  buffer* made = nullptr;                       ///< Or memory that is allocated for it,
  message_parts* parts = nullptr;               ///< or for its parts,
  std::size_t most = 0;                         ///< up to so much;
  std::shared_ptr<buffer_pool_core> pool = {};  ///< or, for `made`, one of these buffers.
};

/// UCX never has the memory: giving up costs nothing. What comes later is dropped, and refused.
/// One into a buffer of a pool takes that when it takes its message; without one it lets messages
/// wait.
class receive_operation final : public operation,
                                public list_hook<posted_tag>,
                                public list_hook<lacking_tag>,
                                public list_hook<borrowing_tag>,
                                private buffer_waiter {
 public:
  enum class source { tagged, taken, stream_some, stream_all };

  /// Starts, without looking for anything. Of one peer, or (no `from`) of any.
  /// `held` keeps the worker. It is done already where its memory is a device's that can not be
  /// reached.
  void begin(worker_core& worker, kept_alive&& held, source kind, const tag_match& wanted,
             std::span<std::byte> into, clock::time_point deadline);
  void begin(worker_core& worker, kept_alive&& held, source kind, const tag_match& wanted,
             const receive_target& into, clock::time_point deadline);

  const tag_match& wanted() const noexcept { return wanted_; }
  const endpoint_core* wanted_from() const noexcept { return from_; }
  /// It waits in a list now; and it does no more.
  void wait_for_message() noexcept { waits_ = true; }
  void matched() noexcept { waits_ = false; }

  /// Returns whether there is a place for a message of this length, or never will be. Else it waits
  /// for a buffer, as long as it `lacks_buffer()`; its worker tries again when there is one.
  bool find_place(std::uint64_t length) { return !pool_ || find_buffer(length); }
  bool lacks_buffer() const noexcept { return lacks_buffer_; }
  /// It is in the list of those who do; `held` is the message of one that was taken by hand.
  void wait_for_buffer(arrived_message* held) noexcept;
  arrived_message* held() const noexcept { return held_; }
  /// It waits for a message instead.
  void needs_no_buffer() noexcept;

  /// Takes a message that is here, or asks for it; ends where it does not fit.
  void take(arrived_message& found);
  /// Takes one that came whole, and wants no answer.
  void take(std::uint64_t tag, std::span<const std::byte> payload);
  /// As `take`, of one that came just now, and that nobody else has seen. Of one that is lent,
  /// `payload` is the offer.
  void take(endpoint_core& from, const parcel& said, std::span<const std::byte> payload);
  /// Reads on where the message lies, `most` bytes at most; returns whether more is left there.
  bool read_loan(std::size_t most);
  /// A piece of the message that it asked for.
  void piece(std::uint64_t offset, std::span<const std::byte> payload);
  /// The sender will send no more of it, or nothing.
  void withdrawn(std::error_code why) noexcept { finish(why); }
  std::uint64_t message_number() const noexcept { return message_; }

  bool wants_nothing() const noexcept { return into_.size() == 0; }
  /// Returns how many bytes of the stream it still takes.
  std::size_t wants() const noexcept { return into_.size() - received_; }
  bool into_device() const noexcept { return into_.on_device(); }
  /// Bytes of the stream: takes what it wants, and returns how much that is; nothing, where its
  /// memory is a device's and they can not be copied there.
  std::size_t feed(std::span<const std::byte> bytes);

  void give_up(errc why) noexcept override { give_up_for(make_error_code(why)); }
  void connection_failed(std::error_code why) noexcept override;
  bool awaits_peer() const noexcept override { return true; }
  message_info received() const noexcept override { return info_; }
  std::string describe() const override;

 protected:
  void recycle() noexcept override;

 private:
  void begin(worker_core& worker, kept_alive&& held, source kind, const tag_match& wanted,
             clock::time_point deadline, std::error_code unreachable) noexcept;
  bool find_buffer(std::uint64_t length);
  bool prepare(std::uint64_t length, std::error_code& ec);
  bool borrow(message_link& link, const parcel& said, std::span<const std::byte> offer);
  parcel announced() const noexcept;
  void give_up_for(std::error_code why) noexcept;
  void finish(std::error_code outcome) noexcept;
  void leave_pool() noexcept;
  void give_back(buffer&& unwanted) noexcept;
  void buffer_came() noexcept override;

  source source_ = source::tagged;
  tag_match wanted_ = tag_match::any();
  const endpoint_core* from_ = nullptr;
  bool counted_ = false;  // by its connection's link, as one that waits
  bool waits_ = false;
  byte_runs<std::byte> into_;
  buffer* made_ = nullptr;
  message_parts* parts_ = nullptr;
  std::size_t most_ = 0;
  std::shared_ptr<buffer_pool_core> pool_;
  buffer place_;  // of the pool, for the message that is being taken
  bool lacks_buffer_ = false;
  arrived_message* held_ = nullptr;  // meanwhile
  message_info info_;
  bool came_ = false;          // and its tag and kind are known
  std::uint64_t id_ = 0;       // while its message is on the way
  std::uint64_t message_ = 0;  // that message's
  message_kind kind_ = message_kind::tagged;
  std::size_t received_ = 0;
  cma_read loan_;
  bool borrows_ = false;  // and is in its worker's list of those
};

}  // namespace ucx::detail
