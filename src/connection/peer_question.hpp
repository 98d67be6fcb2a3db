// A question to a peer that the peer answers by messages.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/clock.hpp"
#include "base/id_table.hpp"
#include "base/intrusive_list.hpp"
#include "wire/frame.hpp"
#include "worker/operation.hpp"

namespace ucx::detail {

struct waiting_tag {};

/// Known to the peer by `id()`; answers that find no operation of that id are dropped.
class peer_question : public operation, public list_hook<waiting_tag> {
 public:
  std::uint64_t id() const noexcept { return id_; }
  /// Returns the object that it accesses; null where that is no region of a handle.
  virtual const void* target() const noexcept = 0;

  /// Sends the question. Called when the connection is ready and has room; again only where all of
  /// the answer has come.
  virtual void ask() = 0;
  /// The peer answered with `answer` and `payload`; a lie about either fails the connection.
  virtual void answered(const frame& answer, std::span<const std::byte> payload) = 0;
  /// Part of the answer begins to come. Returns where its payload of `size` bytes goes, which has
  /// `answered` called with that memory; nothing where it goes to memory of the carrier's.
  virtual std::span<std::byte> landing_of(const frame& answer, std::size_t size) noexcept;
  bool awaits_peer() const noexcept override { return true; }

  void connection_failed(std::error_code why) noexcept override { give_up_for(why); }
  void give_up(errc why) noexcept override { give_up_for(make_error_code(why)); }
  virtual void give_up_for(std::error_code why) noexcept = 0;

  // Its connection's own marks.
  bool was_asked = false;   ///< Whether it is in the list of those that were sent.
  std::uint64_t fence = 0;  ///< Behind how many fences it was started.
  void* arrival = nullptr;  ///< By which the carrier knows the place; null: there is none.

 protected:
  /// Throws before it is started only. Starts, with so many further references, and puts the
  /// operation on its connection's books.
  void enter(endpoint_core& connection, clock::time_point deadline, unsigned further_references);
  /// Takes it off; answers that come later are dropped.
  void leave() noexcept;
  /// The carrier lets go of the memory that `landing_of` named, where it still has it.
  void take_back_place() noexcept;
  /// Ends the connection: the peer broke the protocol.
  void blame_peer(const char* what);
  /// Sends `asked` in one message. The payload has to stay where it is for as long as the operation
  /// is not recycled. UCX reads it until it has been sent, and so long the operation is kept.
  void send_question(const frame& asked, std::span<const std::byte> payload = {});

 private:
  static void on_sent(void* request, ucs_status_t status, void* self);

  std::uint64_t id_ = 0;
  bool entered_ = false;
  frame::bytes header_ = {};
};

/// Finds operations by the id that the peer echoes.
using question_table = id_table<peer_question>;

}  // namespace ucx::detail
