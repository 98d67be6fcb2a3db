#include "carrier/carrier_endpoint.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "base/logger.hpp"
#include "carrier/carrier_failure.hpp"
#include "carrier/carrier_worker.hpp"
#include "carrier/socket_status.hpp"
#include "os/tcp_socket.hpp"

namespace ucx::detail {
namespace {

/// A message that may overtake others, with head and header.
constexpr std::size_t longest_short = std::size_t{8} << 10U;
/// A long message that waits is overtaken by so many bytes.
constexpr std::size_t most_overtaking = std::size_t{256} << 10U;
/// Of one connection in a round, so that none waits for another one's flood.
constexpr unsigned most_writes = 16;
constexpr std::size_t dropped_at_a_time = std::size_t{1} << 20U;

::iovec piece(std::span<const std::byte> bytes) noexcept {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

}  // namespace

carrier_endpoint::carrier_endpoint(carrier_worker& worker, owned_descriptor socket,
                                   std::unique_ptr<tls_session> tls) noexcept
    : worker_(worker), socket_(std::move(socket)), tls_(std::move(tls)) {}

carrier_endpoint::~carrier_endpoint() {
  drop_socket();
  end_all(UCS_ERR_CANCELED);
  if (arriving_.in_place) worker_.has_no_place(*this);
  if (arriving_.payload != nullptr && !arriving_.in_place)
    worker_.buffers().give_back(arriving_.payload);
}

bool carrier_endpoint::has_company() const noexcept { return is_accepted_ && worker_.is_shared(); }

void carrier_endpoint::take_handler(const ucp_ep_params_t& params) noexcept {
  if ((params.field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLER) != 0) on_error_ = params.err_handler;
}

void carrier_endpoint::happened(std::uint32_t events) noexcept {
  if ((events & EPOLLIN) != 0) readable_ = true;
  if ((events & EPOLLOUT) != 0) writable_ = true;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) hung_up_ = readable_ = true;
  worker_.look_again(*this);
}

unsigned carrier_endpoint::look() noexcept {
  if (stage_ == stage::connecting) {
    if (!writable_ && !hung_up_) return 0;
    connected();
  } else if (stage_ == stage::shaking) {
    shake();
  }
  unsigned done = 1;
  if (stage_ == stage::open && hung_up_) done += receive();
  if (stage_ == stage::open && writable_) done += send_waiting();
  if (stage_ == stage::open && readable_) done += receive();
  const bool sends_on =
      writable_ && (current_ != nullptr || !short_.empty() || !long_.empty() || has_unsent());
  if (stage_ == stage::open && (readable_ || sends_on)) worker_.look_again(*this);
  return done;
}

void carrier_endpoint::fail(ucs_status_t why) noexcept {
  if (stage_ == stage::failed) return;
  if (was_refused()) why = status_user_refused;
  // A peer that does not want the connection ends it, before it has said anything.
  if (!greeted_ && why == UCS_ERR_CONNECTION_RESET) why = UCS_ERR_REJECTED;
  stage_ = stage::failed;
  failure_ = why;
  drop_socket();
  end_all(why);
  worker_.failed(*this);
}

void carrier_endpoint::tell_failure() noexcept {
  if (on_error_.cb != nullptr) {
    on_error_.cb(on_error_.arg, reinterpret_cast<ucp_ep_h>(this), failure_);
  }
}

/// A server of this process finds out by it who has connected.
void carrier_endpoint::note_flow(const sockaddr& to, socklen_t size) noexcept {
  sockaddr_storage ours = {};
  sockaddr_storage theirs = {};
  std::memcpy(&theirs, &to, std::min<std::size_t>(size, sizeof theirs));
  if (local(ours) == UCS_OK) flow_ = flow_of(ours, theirs);
  flow_socket_ = tcp_socket::number(socket_.get());
  try {
    if (flow_) own_flows::of_process().add(*flow_, flow_socket_);
  } catch (const std::bad_alloc&) {  // then it is anybody there
    flow_.reset();
  }
}

void carrier_endpoint::check_token() noexcept {
  if (stage_ == stage::failed || !tls_) return;
  const char* const fault = tls_->certificate_fault();
  if (fault == nullptr && (!identity_ || tls_->is_accepted())) return;
  const tls_context& tls = *worker_.tls(AF_INET);
  if (tls.log().writes(log_level::info)) {
    try {
      const std::string whose = identity_ ? " of " + to_string(*identity_) : "";
      tls.log().write(
          log_level::info,
          fault != nullptr
              ? "a connection" + whose + " ends: the peer's certificate: " + fault
              : "a connection ends: its token \"" + identity_->token + "\" was removed or renamed");
    } catch (const std::bad_alloc&) {  // it ends all the same
    }
  }
  fail(UCS_ERR_CONNECTION_RESET);
}

void carrier_endpoint::drop_socket() noexcept {
  leave_queue();
  held_file_ = owned_descriptor();
  next_file_ = owned_descriptor();
  if (!socket_) return;
  if (const auto flow = std::exchange(flow_, std::nullopt)) {
    if (own_flows* const all = own_flows::find()) all->remove(*flow, flow_socket_);
  }
  worker_.forget(socket_.get());
  if (tls_ && stage_ != stage::connecting && stage_ != stage::shaking) tls_->end(socket_.get());
  // The system would drop what has been sent, if bytes of the peer were left unread; not of a Unix
  // socket.
  ::shutdown(socket_.get(), SHUT_WR);
  for (unsigned reads = is_unix_ ? most_writes : 0; reads < most_writes; ++reads) {
    // Of a stream, these bytes are dropped, and copied nowhere.
    if (::recv(socket_.get(), nullptr, dropped_at_a_time, MSG_DONTWAIT | MSG_TRUNC) <= 0) break;
  }
  socket_ = owned_descriptor();
}

void carrier_endpoint::end_all(ucs_status_t why) noexcept {
  if (current_ != nullptr) worker_.end(*std::exchange(current_, nullptr), why);
  for (request_list* each : {&short_, &long_, &flushes_}) {
    while (carrier_request* waiting = each->front()) {
      each->remove(*waiting);
      worker_.end(*waiting, why);
    }
  }
}

ucs_status_ptr_t carrier_endpoint::send(unsigned id, std::span<const std::byte> header,
                                        std::span<const std::byte> payload,
                                        const ucp_request_param_t& params) {
  owned_descriptor file = std::move(next_file_);
  if (stage_ == stage::failed) return as_pointer(failure_);
  if (header.size() > segment_head::longest_header ||
      payload.size() > segment_head::longest_payload) {
    return as_pointer(UCS_ERR_INVALID_PARAM);
  }
  const segment_head head{static_cast<std::uint32_t>(payload.size()),
                          static_cast<std::uint16_t>(header.size()), static_cast<std::uint8_t>(id),
                          file && payload.empty()};
  const bool at_once = (params.op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) != 0;
  const bool not_at_once = (params.op_attr_mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) != 0;
  std::size_t sent = 0;
  if (may_send_at_once()) {
    const auto said = head.encode();
    const std::array<::iovec, 3> parts{piece(said), piece(header), piece(payload)};
    const progress made = write(parts, sent, file.get());
    if (made == progress::failed) return as_pointer(failure_);
    if (sent != 0) has_sent_ = true;
    if (made == progress::all && !not_at_once) return nullptr;
  }
  if (sent == 0 && at_once) return as_pointer(UCS_ERR_NO_RESOURCE);
  try {
    carrier_request& waiting = queue(head, header, payload, sent, params);
    if (sent == 0) waiting.file = std::move(file);
    if (!at_once) return &waiting;
    waiting.is_freed = true;
    waiting.told = nullptr;
    waiting.keep_copy();
    return nullptr;
  } catch (const std::bad_alloc&) {
    if (sent != 0) fail(UCS_ERR_NO_MEMORY);  // the peer has the beginning
    return as_pointer(UCS_ERR_NO_MEMORY);
  }
}

/// Has the rest of a message wait, of which `sent` bytes are on their way.
carrier_request& carrier_endpoint::queue(const segment_head& head,
                                         std::span<const std::byte> header,
                                         std::span<const std::byte> payload, std::size_t sent,
                                         const ucp_request_param_t& params) {
  carrier_request& made = worker_.take_request(params);
  made.head = head.encode();
  made.header = header;
  made.payload = payload;
  made.sent = sent;
  made.number = ++last_number_;
  if (sent == made.size() && !has_unsent()) {
    worker_.end(made, UCS_OK);
  } else if (sent != 0) {
    current_ = &made;
  } else {
    const bool overtakes = has_sent_ && made.size() <= longest_short;
    made.waits_in = overtakes ? &short_ : &long_;
    made.waits_in->push_back(made);
  }
  return made;
}

void carrier_endpoint::pass_file(owned_descriptor file) noexcept {
  if (carries_files()) next_file_ = std::move(file);
}

/// Writes what is left, without waiting; counts what has gone. The file goes with the first byte.
carrier_endpoint::progress carrier_endpoint::write(std::span<const ::iovec> what, std::size_t& sent,
                                                   int file) noexcept {
  ::msghdr message = {};
  message.msg_iov = const_cast<::iovec*>(what.data());
  message.msg_iovlen = what.size();
  passed_descriptor beside;
  if (file >= 0) beside.attach(message, file);
  std::size_t wanted = 0;
  for (const ::iovec& each : what) wanted += each.iov_len;
  ::ssize_t written = 0;
  do {
    written = tls_ ? tls_->write(socket_.get(), what, worker_.cipher_scratch())
                   : ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    // Too many of this user's are on their way: the message goes without.
    if (written < 0 && errno == ETOOMANYREFS && message.msg_control != nullptr) {
      message.msg_control = nullptr;
      message.msg_controllen = 0;
      errno = EINTR;
    }
  } while (written < 0 && errno == EINTR);
  if (written < 0 && (errno == EPIPE || errno == ECONNRESET)) {
    // Its last words are read first, and its end is found behind them.
    writable_ = false;
    readable_ = hung_up_ = true;
    worker_.look_again(*this);
    worker_.wake();
    return progress::some;
  }
  if (written < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
    fail(socket_status(errno));
    return progress::failed;
  }
  if (written > 0) sent += static_cast<std::size_t>(written);
  const bool has_gone = written >= 0 && static_cast<std::size_t>(written) == wanted;
  if (has_gone && !has_unsent()) return progress::all;
  writable_ = false;
  return progress::some;
}

carrier_endpoint::progress carrier_endpoint::send_rest(carrier_request& request) noexcept {
  std::array<::iovec, 3> parts = {};
  std::size_t count = 0;
  std::size_t before = request.sent;
  for (const std::span<const std::byte> each :
       {std::span<const std::byte>(request.head), request.header, request.payload}) {
    const std::size_t gone = std::min(before, each.size());
    before -= gone;
    if (gone < each.size()) parts[count++] = piece(each.subspan(gone));
  }
  const progress made = write(std::span(parts).first(count), request.sent, request.file.get());
  if (request.sent != 0) request.file = owned_descriptor();
  return made;
}

carrier_request* carrier_endpoint::next() noexcept {
  const bool may_overtake = long_.empty() || (has_sent_ && overtaken_ < most_overtaking);
  request_list& from = !short_.empty() && may_overtake ? short_ : long_;
  carrier_request* const taken = from.front();
  if (taken == nullptr) return nullptr;
  overtaken_ = &from == &short_ ? overtaken_ + taken->size() : 0;
  from.remove(*taken);
  taken->waits_in = nullptr;
  return taken;
}

unsigned carrier_endpoint::send_waiting() noexcept {
  unsigned done = 0;
  const unsigned most = has_company() ? 1 : most_writes;
  if (current_ == nullptr && has_unsent()) {  // what is no message: an answer of TLS's
    std::size_t none = 0;
    if (write({}, none) == progress::failed) return 1;
  }
  while (writable_ && done < most) {
    if (current_ == nullptr) current_ = next();
    if (current_ == nullptr) {
      end_flushes();
      break;
    }
    const progress made = send_rest(*current_);
    if (made == progress::failed) return done + 1;
    has_sent_ = has_sent_ || current_->sent != 0;
    if (made != progress::all) break;
    ++done;
    worker_.end(*std::exchange(current_, nullptr), UCS_OK);
    end_flushes();
  }
  return done;
}

/// Returns the number of the first message that waits or is on its way: both lists are in order.
std::uint64_t carrier_endpoint::oldest() const noexcept {
  std::uint64_t least = ~std::uint64_t{0};
  for (const carrier_request* each : {current_, short_.front(), long_.front()}) {
    if (each != nullptr) least = std::min(least, each->number);
  }
  return least;
}

/// A flush ends when what was sent before it has gone; later messages do not hold it up.
void carrier_endpoint::end_flushes() noexcept {
  if (!greeted_) return;
  while (carrier_request* waiting = flushes_.front()) {
    if (waiting->number >= oldest()) return;
    flushes_.remove(*waiting);
    worker_.end(*waiting, UCS_OK);
  }
}

ucs_status_ptr_t carrier_endpoint::flush(const ucp_request_param_t& params) {
  if (stage_ == stage::failed) return as_pointer(failure_);
  if (greeted_ && may_send_at_once()) return nullptr;
  carrier_request& waiting = worker_.take_request(params);
  waiting.number = last_number_;
  flushes_.push_back(waiting);
  return &waiting;
}

ucs_status_ptr_t carrier_endpoint::close(const ucp_request_param_t& params) {
  drop_socket();
  stage_ = stage::failed;
  on_error_ = {};
  end_all(UCS_ERR_CANCELED);
  carrier_request* told = nullptr;
  if (worker_.has_untold()) {
    try {
      told = &worker_.take_request(params);
      worker_.end(*told, UCS_OK);
    } catch (const std::bad_alloc&) {  // it is closed all the same
    }
  }
  worker_.bury(*this);
  return told;
}

ucs_status_t carrier_endpoint::local(sockaddr_storage& told) const noexcept {
  socklen_t size = sizeof told;
  return ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&told), &size) == 0
             ? UCS_OK
             : UCS_ERR_NOT_CONNECTED;
}

ucs_status_t carrier_endpoint::peer(sockaddr_storage& told) const noexcept {
  socklen_t size = sizeof told;
  return ::getpeername(socket_.get(), reinterpret_cast<sockaddr*>(&told), &size) == 0
             ? UCS_OK
             : UCS_ERR_NOT_CONNECTED;
}

}  // namespace ucx::detail
