// The reading side of a connection over a socket: messages that come in one read, or in several.
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "carrier/carrier_endpoint.hpp"
#include "carrier/carrier_failure.hpp"
#include "carrier/carrier_worker.hpp"
#include "carrier/socket_status.hpp"

namespace ucx::detail {
namespace {

/// Of one connection in a round, so that none waits for another one's flood.
constexpr unsigned most_reads = 2;
/// One read, of about one short message, where others are read from. So a peer that asks without a
/// pause leaves the rest of a round to them. Long payloads go past it.
constexpr std::size_t read_in_company = 128;
/// A hello or a welcome, with a worker address that there is none of.
constexpr std::size_t longest_greeting = std::size_t{72} << 10U;

/// A listener of TLS says that to a peer in the clear.
bool is_alert_of_tls(std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x15} && bytes[1] == std::byte{0x03};
}

}  // namespace

/// The rest of a payload goes to its place, and what is behind it into the scratch memory.
unsigned carrier_endpoint::receive() noexcept {
  unsigned done = 0;
  if (readable_) worker_.note_reader(*this);
  const bool in_company = has_company();
  const std::size_t most = in_company ? read_in_company : carrier_worker::scratch_size;
  const unsigned times = in_company ? 1 : most_reads;
  for (unsigned reads = 0; readable_ && stage_ == stage::open && reads < times; ++reads) {
    std::byte* const scratch = worker_.scratch();
    const std::size_t kept = partial_.size();
    if (kept != 0) std::memcpy(scratch, partial_.data(), kept);
    const std::span<std::byte> room(scratch + kept,
                                    std::min(most, carrier_worker::scratch_size - kept));
    const std::size_t rest = arriving_.size - arriving_.filled;
    std::array<::iovec, 2> parts = {};
    std::size_t count = 0;
    if (rest != 0 && arriving_.payload == nullptr) {
      parts[count++] = {scratch, std::min(rest, carrier_worker::scratch_size)};
    } else {
      if (rest != 0) parts[count++] = {arriving_.payload + arriving_.filled, rest};
      parts[count++] = {room.data(), room.size()};
    }
    bool brought_file = false;
    const ::ssize_t read = this->read(std::span(parts).first(count), brought_file);
    if (stage_ != stage::open) return done + 1;
    if (read < 0) {
      if (errno == EINTR) continue;
      const bool is_dry = errno == EAGAIN || errno == EWOULDBLOCK;
      readable_ = is_dry && tls_ && tls_->may_have_more();
      const bool was_told = tls_ && !greeted_ && tls_->why() != UCS_OK;
      if (!is_dry) fail(was_told ? tls_->why() : socket_status(errno));
      return done;
    }
    if (read == 0) {
      fail(UCS_ERR_CONNECTION_RESET);
      return done + 1;
    }
    const auto came = static_cast<std::size_t>(read);
    const std::size_t asked = parts[0].iov_len + parts[1].iov_len;
    // The system ends a read behind the bytes that a file came with.
    const bool is_all = tls_ ? !tls_->may_have_more() : came < asked && !brought_file;
    if (is_all && !hung_up_) readable_ = false;
    try {
      const std::size_t placed = std::min(came, rest);
      arriving_.filled += placed;
      partial_.clear();
      if (rest != 0 && placed == rest) end_long();
      ++done;
      if (came > placed) done += take({scratch, kept + came - placed});
    } catch (const std::bad_alloc&) {
      fail(UCS_ERR_NO_MEMORY);
    }
    // Of a message that is not here yet, or of none.
    if (held_file_ && partial_.empty()) fail(status_no_message);
  }
  return done;
}

::ssize_t carrier_endpoint::read(std::span<const ::iovec> parts, bool& brought_file) noexcept {
  if (tls_) return tls_->read(socket_.get(), parts, worker_.cipher_scratch());
  // Where no file is expected, the system drops it.
  if (!takes_files_) return ::readv(socket_.get(), parts.data(), static_cast<int>(parts.size()));
  ::msghdr message = {};
  message.msg_iov = const_cast<::iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  passed_descriptor beside;
  beside.expect(message);
  const ::ssize_t read = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (read < 0) return read;
  owned_descriptor file;
  const passed_descriptor::arrival came = passed_descriptor::take(message, file);
  if (came == passed_descriptor::arrival::too_many) fail(status_no_message);
  brought_file = came == passed_descriptor::arrival::came;
  if (brought_file) hold(std::move(file));
  return read;
}

/// Nothing but sealed memory is kept, one file at a time.
void carrier_endpoint::hold(owned_descriptor file) noexcept {
  if (!held_file_ && is_sealed_memory(file.get())) {
    held_file_ = std::move(file);
    return;
  }
  close_elsewhere(std::move(file));
  fail(status_no_message);
}

owned_descriptor carrier_endpoint::passed_file() noexcept {
  return is_for_handler_ ? std::move(held_file_) : owned_descriptor();
}

bool carrier_endpoint::take_preamble(std::span<std::byte>& bytes) {
  if (!tls_ && is_alert_of_tls(bytes)) {
    fail(status_tls_expected);
    return false;
  }
  if (bytes.size() < preamble::size) {
    partial_.assign(bytes.begin(), bytes.end());
    return false;
  }
  const auto said = preamble::look_at(bytes.first<preamble::size>());
  if (said == preamble::verdict::refused) {
    fail(status_user_refused);
    return false;
  }
  if (said != preamble::verdict::ours) {
    fail(said == preamble::verdict::foreign ? UCS_ERR_REJECTED : UCS_ERR_UNSUPPORTED);
    return false;
  }
  greeted_ = true;
  bytes = bytes.subspan(preamble::size);
  end_flushes();
  return true;
}

/// The first message is a greeting, which is short: a stranger gets no memory for more.
bool carrier_endpoint::may_come(const segment_head& head) const noexcept {
  return worker_.has_handler(head.id) && (has_heard_ || head.payload <= longest_greeting);
}

/// Delivers each whole message of these bytes, and keeps the beginning of another one.
unsigned carrier_endpoint::take(std::span<std::byte> bytes) {
  if (!greeted_ && !take_preamble(bytes)) return 1;
  unsigned done = 0;
  while (stage_ == stage::open && !bytes.empty()) {
    std::size_t beginning = segment_head::size;
    segment_head head;
    if (bytes.size() >= beginning) {
      const auto read = decode_segment_head(bytes.first<segment_head::size>());
      if (!read) {
        fail(status_no_message);
        return done;
      }
      head = *read;
      beginning += head.header;
      if (!may_come(head)) {
        fail(status_no_message);
        return done;
      }
    }
    if (bytes.size() < beginning) {
      partial_.assign(bytes.begin(), bytes.end());
      return done;
    }
    if (bytes.size() - beginning < head.payload) {
      begin_long(head, bytes);
      return done;
    }
    is_for_handler_ = head.has_file;
    worker_.deliver(*this, head.id, bytes.data() + segment_head::size, head.header,
                    bytes.data() + beginning, head.payload, false);
    if (std::exchange(is_for_handler_, false)) held_file_ = owned_descriptor();
    ++done;
    has_heard_ = true;
    bytes = bytes.subspan(beginning + head.payload);
  }
  return done;
}

/// The rest of this message is read to its place.
void carrier_endpoint::begin_long(const segment_head& head, std::span<const std::byte> bytes) {
  const std::span<const std::byte> header = bytes.subspan(segment_head::size, head.header);
  const std::span<const std::byte> begun = bytes.subspan(segment_head::size + head.header);
  arriving_.header.assign(header.begin(), header.end());
  arriving_.size = head.payload;
  arriving_.filled = begun.size();
  arriving_.id = head.id;
  worker_.announce(*this, head.id, header, head.payload);
  if (stage_ != stage::open) return;
  if (!arriving_.in_place) arriving_.payload = worker_.buffers().take(head.payload);
  std::copy(begun.begin(), begun.end(), arriving_.payload);
}

bool carrier_endpoint::give_place(std::span<std::byte> place) {
  if (place.size() != arriving_.size || arriving_.in_place) return false;
  worker_.has_place(*this);
  arriving_.payload = place.data();
  arriving_.in_place = true;
  return true;
}

void carrier_endpoint::lose_place() noexcept {
  if (!std::exchange(arriving_.in_place, false)) return;
  arriving_.payload = nullptr;
  worker_.has_no_place(*this);
}

void carrier_endpoint::end_long() {
  std::byte* const payload = std::exchange(arriving_.payload, nullptr);
  const std::size_t size = std::exchange(arriving_.size, 0);
  const bool in_place = std::exchange(arriving_.in_place, false);
  arriving_.filled = 0;
  if (in_place) worker_.has_no_place(*this);
  has_heard_ = true;
  if (payload == nullptr) return;
  const bool kept = worker_.deliver(*this, arriving_.id, arriving_.header.data(),
                                    arriving_.header.size(), payload, size, !in_place);
  if (!kept && !in_place) worker_.buffers().give_back(payload);
}

}  // namespace ucx::detail
