// Sends the frames and parcels of a worker that no operation waits for.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/intrusive_list.hpp"
#include "base/owned_descriptor.hpp"
#include "base/pool.hpp"
#include "base/result.hpp"
#include "connection/peer_question.hpp"
#include "ucp/ucp_api.hpp"
#include "wire/brief_parcel.hpp"
#include "wire/frame.hpp"
#include "wire/parcel.hpp"

namespace ucx::detail {

class endpoint_core;
class worker_core;

class frame_sender {
 public:
  /// UCX's id of our active messages; applications have all others. UCX keeps a table up to the
  /// largest id in use, so it is small.
  static constexpr unsigned message_id = 0xff;
  /// And that of parcels, which carry applications' messages.
  static constexpr unsigned parcel_id = 0xfe;

  explicit frame_sender(worker_core& worker) noexcept : worker_(worker) {}
  /// Frees what UCX never gave back. REQUIRES: UCX's worker is gone.
  ~frame_sender();
  frame_sender(const frame_sender&) = delete;
  frame_sender& operator=(const frame_sender&) = delete;

  /// Asks UCX's worker how long headers may be.
  result<void> open();

  /// The operations of this side that peers may answer.
  question_table& questions() noexcept { return questions_; }

  enum class kind {
    plain,
    hello,    ///< Tells the receiver which endpoint it came over.
    reply,    ///< Counted by its connection until UCX has sent it.
    control,  ///< Its bytes are counted by its connection until then.
    file,     ///< Likewise it.
  };
  /// Sends a frame, with an optional payload, that no operation waits for. A failure fails the
  /// connection.
  void send(endpoint_core& to, const frame& said, std::span<const std::byte> payload = {},
            kind what = kind::plain);
  /// Sends a frame with a file beside it; counted as `kind::file`.
  void send(endpoint_core& to, const frame& said, owned_descriptor file);
  /// Sends a parcel without payload, as a reply that no operation waits for.
  void send(endpoint_core& to, const parcel& said);
  /// The longest user's header, and the longest bytes, of a message that is worth a copy.
  static constexpr std::size_t short_header = 64;
  static constexpr std::size_t short_message = 1024;
  struct in_flight_tag {};
  /// A frame or parcel that is sent from memory of the library.
  struct outgoing final : list_hook<in_flight_tag> {
    frame_sender* sender = nullptr;
    endpoint_core* to = nullptr;
    kind what = kind::plain;
    std::array<std::byte, std::max(frame::size, brief_parcel::longest + short_header)> header = {};
    std::vector<std::byte> payload;
  };
  /// Sends a parcel of a message; both are the caller's again, as copies or gone. REQUIRES: they
  /// are short.
  void send_short(endpoint_core& to, std::span<const std::byte> header,
                  std::span<const std::byte> bytes);
  /// Returns how long a user's header may be where UCX takes headers of `most` bytes.
  static constexpr std::size_t header_within(std::size_t most) noexcept {
    return most < parcel::size ? 0 : std::min(most - parcel::size, parcel::longest_user_header);
  }
  /// Writes into the log what a frame is, and what one `does` with it.
  void log(const char* does, const frame& of, std::size_t length);
  /// Returns how long the user's header of a message may be.
  std::size_t longest_header() const noexcept { return longest_header_; }

 private:
  static void on_sent(void* request, ucs_status_t status, void* sent);
  outgoing& take(endpoint_core& to, kind what, std::span<const std::byte> payload);
  void post(outgoing& message, unsigned id, std::size_t header_size);
  void sent(outgoing& message, ucs_status_t status);

  worker_core& worker_;
  question_table questions_;
  std::size_t longest_header_ = parcel::longest_user_header;
  pool<outgoing> outgoing_;
  intrusive_list<outgoing, in_flight_tag> in_flight_;  // of the pool; UCX has them
};

}  // namespace ucx::detail
