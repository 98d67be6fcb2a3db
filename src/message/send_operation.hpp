// A send: of a message, whole or in pieces that its receiver asked for, or to the byte stream.
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/clock.hpp"
#include "base/intrusive_list.hpp"
#include "connection/piece_sender.hpp"
#include "message/byte_runs.hpp"
#include "message/lent_memory.hpp"
#include "message/send_source.hpp"
#include "ucx/buffer.hpp"
#include "ucx/payload.hpp"
#include "wire/cma_offer.hpp"
#include "wire/parcel.hpp"
#include "worker/operation.hpp"

namespace ucx::detail {

struct send_tag {};
struct lent_tag {};

/// Short messages go whole, from the caller's memory. Longer ones are announced, and go in pieces
/// of one segment, or one element, where the receiver says. The receiver may read them where they
/// lie instead: on the same host, or by RMA hardware. Then the bytes are the caller's again when
/// the receiver has said that it does not read them, or the connection is lost. Bytes of a device
/// are copied out of it when they go: whole, or a piece at a time.
///
/// How far it has come (it has ended when it is over, or has failed, and UCX has nothing of the
/// caller's any more):
///
///     from   | to   | when
///     unsaid | said | UCX was given the message, its announcement, or the first of its bytes
///     unsaid | over | there is nothing to say: an empty write to the byte stream
///     said   | over | all was said, or the receiver has it
///     over   | said | UCX could not send it: the connection's failure, which is told soon, ends it
class send_operation final : public operation,
                             public list_hook<send_tag>,
                             public list_hook<lent_tag>,
                             private piece_sender {
 public:
  /// The list of the connection that it is in. The connection sets this.
  enum class where { nowhere, queued, unanswered };
  where place = where::nowhere;

  /// Starts, and puts it on its connection's books. REQUIRES: the header fits, and the source has a
  /// way. Takes nothing if it throws.
  void begin(std::shared_ptr<endpoint_core> over, const send_source& source,
             const send_options& options);
  /// Tells the connection's handler how it ended, with this key. Right behind `begin`.
  /// REQUIRES: the worker expects the handler of it.
  void tell(std::uint64_t key) noexcept;

  message_kind kind() const noexcept { return said_.kind; }
  std::uint64_t number() const noexcept { return said_.number; }
  /// Returns whether UCX was given some of it, so that the peer may have it.
  bool was_said() const noexcept { return step_ != step::unsaid; }
  /// Returns whether it may be queued where there is no room.
  bool may_wait() const noexcept { return waits_ || step_ != step::unsaid; }
  /// Says what there is room for; returns whether that was all. It may have ended then.
  bool go();
  /// The peer takes it: at its receive of this number; or has it already.
  bool granted(std::uint64_t receive, std::uint64_t length);
  void acknowledged();
  void refused(std::error_code why);

  void give_up(errc why) noexcept override { give_up_for(make_error_code(why), true); }
  /// Once it was given up: nothing of the caller's is in it, so that its request may go.
  bool is_own() const noexcept override { return lasting_ && failure_; }
  void connection_failed(std::error_code why) noexcept override;
  bool awaits_peer() const noexcept override { return true; }
  std::string describe() const override;
  request_attributes attributes() const override {
    return {.kind = streams() ? operation_kind::stream_send : operation_kind::send,
            .size = bytes_.size(),
            .memory = bytes_.kind()};
  }

 protected:
  void recycle() noexcept override;

 private:
  enum class step { unsaid, said, over };
  /// The parts that UCX has, besides pieces.
  enum class lent { nothing, header, header_and_payload };
  static void on_header_sent(void* request, ucs_status_t status, void* self);
  std::error_code copy_all(clock::time_point until);
  bool go_whole();
  bool go_announced();
  void lend();
  void offer_key();
  bool go_streaming();
  std::span<std::byte> header_room(std::size_t size);
  ucs_status_t post_parcel(std::span<const std::byte> payload);
  bool announce_instead(std::size_t units, ucs_status_t why);
  void header_returned(ucs_status_t status);
  wrapped_piece wrap(sent_piece& piece, bool copies) override;
  void taken_back(std::size_t size) noexcept override;
  std::size_t say_piece(sent_piece& piece) noexcept;
  std::size_t say_chunk(sent_piece& piece) noexcept;
  bool may_post() noexcept override;
  std::error_code stage(std::size_t size) noexcept;
  void pieces_moved() override;
  std::size_t next_size() const noexcept;
  bool goes_in_elements() const noexcept;
  bool streams() const noexcept { return said_.kind == message_kind::stream; }
  void give_up_for(std::error_code why, bool tell_peer) noexcept;
  void linger() noexcept;
  bool memory_in_use() const noexcept {
    return lent_ == lent::header_and_payload || sending() || fetched_.lends();
  }
  void end_if_over() noexcept;
  void watch_peer(bool wanted) noexcept;
  void give_back_owned() noexcept;
  void take_back_whole() noexcept;

  byte_runs<const std::byte> bytes_;
  std::vector<std::byte> parts_table_;
  std::vector<std::byte> copy_;
  std::vector<std::byte> staged_;  // the next piece, out of a device's memory
  buffer owned_;
  parcel said_;
  std::array<std::byte, 160> short_header_ = {};
  std::vector<std::byte> long_header_;
  std::size_t header_size_ = 0;
  bool header_is_long_ = false;
  cma_record loan_;
  lent_memory fetched_;
  std::uint64_t receive_ = 0;  // the peer's
  std::uint16_t credit_ = 0;   // that the last piece carries
  bool waits_ = true;
  bool wants_answer_ = false;
  bool lasting_ = false;  // the bytes are there as long as this is
  step step_ = step::unsaid;
  lent lent_ = lent::nothing;
  void* whole_ = nullptr;  // UCX's request of the first message, while it has one
  bool watched_ = false;   // the peer's heart, while UCX has the caller's memory
  bool owes_withdrawal_ = false;
  std::error_code failure_;
  std::optional<std::uint64_t> key_;  // of one that was posted
};

}  // namespace ucx::detail
