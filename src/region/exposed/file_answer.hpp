// One read of a peer's from a file, being answered.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>

#include "base/intrusive_list.hpp"
#include "file/slow_reader.hpp"
#include "ucp/ucp_api.hpp"
#include "wire/frame.hpp"

namespace ucx::detail {

class endpoint_core;
class exposed_region;
class file_service;
struct file_client;
struct file_answer_tag {};
struct hungry_tag {};

/// Goes piece by piece: a buffer from the service, bytes from the file, a message to the peer. A
/// few pieces are under way at a time, so that reading and sending overlap; they leave in any
/// order.
class file_answer final : public list_hook<file_answer_tag>, public list_hook<hungry_tag> {
 public:
  void begin(file_service& service, file_client& client, endpoint_core& to, exposed_region& region,
             const frame& asked);

  const exposed_region* region() const noexcept { return region_; }
  endpoint_core& peer() const noexcept { return *peer_; }
  file_client& client() const noexcept { return *client_; }
  bool queued() const noexcept { return list_hook<hungry_tag>::linked(); }

  // Each of these may end the answer, and with it the object.
  /// Gives it the buffer that it queued for.
  void read_into(staging_buffer buffer);
  /// A read that it started has come back from the disk.
  void read_done(slow_read& done);
  /// Tells the peer why there will be no more, and lets go of the region.
  void refuse(std::error_code why);
  /// The connection is gone: nothing more is sent.
  void peer_failed();
  /// Ends without a word; UCX must have no piece of it any more.
  void forget() noexcept;

 private:
  static constexpr std::size_t most_pieces = 3;
  struct piece {
    file_answer* owner = nullptr;
    bool busy = false;
    bool sending = false;
    std::uint64_t offset = 0;  // in the answer
    std::size_t size = 0;
    std::size_t posted = 0;  // of it
    staging_buffer buffer;   // unless the disk has it:
    std::shared_ptr<slow_read> slow;
    frame::bytes header = {};
  };

  static void on_sent(void* request, ucs_status_t status, void* piece);
  bool wants_buffer() const noexcept;
  void ask_disk(piece& missing, std::size_t present);
  bool start_reading(piece& missing, std::size_t present);
  void send(piece& filled);
  ucs_status_ptr_t post(piece& filled, std::size_t size);
  bool sent(piece& done, ucs_status_t status);
  void release(piece& done) noexcept;
  void stop() noexcept;
  void refuse_rest(std::error_code why);
  void let_go_of_region() noexcept;
  void settle();

  file_service* service_ = nullptr;
  file_client* client_ = nullptr;
  endpoint_core* peer_ = nullptr;
  exposed_region* region_ = nullptr;
  std::shared_ptr<file_source> file_;
  frame asked_;
  std::uint64_t next_ = 0;  // first byte of the answer that no piece has
  unsigned busy_ = 0;
  unsigned sending_ = 0;
  bool stopped_ = false;
  bool small_ = false;  // messages, because UCX could not register a buffer
  std::array<piece, most_pieces> pieces_;
};

}  // namespace ucx::detail
