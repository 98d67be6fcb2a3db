#include "message/send_operation.hpp"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/deadline.hpp"
#include "base/if_there_is_memory.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/frame_sender.hpp"
#include "memory/buffer_home.hpp"
#include "message/message_exchange.hpp"
#include "message/message_link.hpp"
#include "wire/brief_parcel.hpp"
#include "wire/parts_table.hpp"
#include "wire/rma_offer.hpp"
#include "worker/ucx_callback.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Runs shorter than this are copied together rather than sent as pieces of their own.
constexpr std::size_t shortest_run = std::size_t{16} << 10U;

/// The most memory that each vector of an idle operation keeps.
constexpr std::size_t most_memory_kept = std::size_t{64} << 10U;

}  // namespace

void send_operation::begin(std::shared_ptr<endpoint_core> over, const send_source& source,
                           const send_options& options) {
  worker_core& worker = over->worker();
  place = where::nowhere;
  said_ = {};
  said_.kind = source.kind();
  said_.tag = source.tag();
  const std::span<const std::byte> header = source.header();
  said_.header_length = static_cast<std::uint16_t>(header.size());
  header_size_ = parcel::size + header.size();
  header_is_long_ = false;
  std::copy(header.begin(), header.end(), header_room(header_size_).begin() + parcel::size);
  receive_ = 0;
  waits_ = options.backpressure == backpressure::wait;
  wants_answer_ = options.until == send_until::matched && !streams();
  step_ = step::unsaid;
  lent_ = lent::nothing;
  lasting_ = source.owned() != nullptr;
  watched_ = false;
  owes_withdrawal_ = false;
  failure_.clear();
  whole_ = nullptr;
  key_.reset();
  if (source.as_parts()) {
    encode_parts_table(source.runs(), parts_table_);
    bytes_.assign(std::span<const std::byte>(parts_table_));
    bytes_.append(source.runs());
  } else if (source.runs().empty()) {
    bytes_.assign(source.bytes());
  } else {
    bytes_.assign(source.runs());
  }
  std::error_code unreadable = bytes_.find_devices(worker.copiers());
  said_.memory = options.kind.value_or(bytes_.kind());
  const clock::time_point until = worker.deadline_after(options.timeout);
  if (options.memory == send_memory::copied && source.owned() == nullptr && !unreadable) {
    unreadable = copy_all(until);
  }
  if (source.owned() != nullptr) owned_ = std::move(*source.owned());
  said_.length = bytes_.size();
  start(worker, over, until);
  prepare_pieces(*endpoint(), bytes_.size());
  if (unreadable) return give_up_for(unreadable, false);
  endpoint()->messages().outgoing().start(*this);
}

/// From here on what is sent is a copy.
std::error_code send_operation::copy_all(clock::time_point until) {
  copy_.resize(bytes_.size());
  if (const std::error_code ec = bytes_.copy_out(0, copy_, until)) return ec;
  bytes_.assign(std::span<const std::byte>(copy_));
  lasting_ = true;
  return {};
}

void send_operation::tell(std::uint64_t key) noexcept {
  claim_handler();
  if (!done()) key_ = key;
  set_expected_handler(
      [handlers = endpoint()->messages().handlers(), key](std::error_code outcome) {
        if (handlers && handlers->on_sent) handlers->on_sent(key, outcome);
      });
}

bool send_operation::go() {
  if (said_.kind == message_kind::stream) return go_streaming();
  const bool whole =
      endpoint()->messages().outgoing().goes_whole(bytes_.size() + said_.header_length);
  return whole ? go_whole() : go_announced();
}

bool send_operation::go_whole() {
  message_link& link = endpoint()->messages();
  // The caller's memory is copied where UCX may keep it for long and can not be made to let go.
  const bool copies = bytes_.size() > 0 && (!bytes_.contiguous() || bytes_.on_device() ||
                                            (!lasting_ && !endpoint()->detects_failure()));
  const std::size_t units = units_of(bytes_.size() + said_.header_length);
  if (!link.outgoing().has_room(units)) return false;
  if (copies) {  // what throws, or fails, has used nothing
    if (const std::error_code ec = copy_all(deadline())) {
      give_up_for(ec, false);
      return true;
    }
  }
  link.outgoing().take_room(units);
  said_.code = parcel_code::message;
  said_.acknowledge = wants_answer_;
  const std::span<const std::byte> payload = bytes_.from(0);
  if (wants_answer_) {
    link.outgoing().await_answer(*this);
  } else {
    link.outgoing().all_said(*this);
    step_ = step::over;
  }
  const ucs_status_t posted = post_parcel(payload);
  return posted == UCS_OK || announce_instead(units, posted);
}

/// UCX could not register the payload, and sent nothing: it goes in pieces that UCX copies.
bool send_operation::announce_instead(std::size_t units, ucs_status_t why) {
  message_link& link = endpoint()->messages();
  link.outgoing().not_said(units);
  link.incoming().return_credit(said_.credit);
  step_ = step::unsaid;
  shrink(why);
  return go_announced();
}

/// Returns where the header goes, of which `size` bytes are wanted, with what is in it already.
std::span<std::byte> send_operation::header_room(std::size_t size) {
  if (!header_is_long_ && size <= short_header_.size()) return std::span(short_header_).first(size);
  if (long_header_.size() < size) long_header_.resize(size);
  if (!header_is_long_) std::copy(short_header_.begin(), short_header_.end(), long_header_.begin());
  header_is_long_ = true;
  return std::span(long_header_).first(size);
}

bool send_operation::go_announced() {
  message_link& link = endpoint()->messages();
  if (!link.outgoing().take_room(units_of(said_.header_length))) return false;
  said_.code = parcel_code::announce;
  said_.acknowledge = false;
  said_.lends = bytes_.contiguous() && bytes_.size() > 0 && !bytes_.on_device() && link.lends() &&
                header_size_ + cma_offer::size <= worker().ucx().largest_header();
  if (!said_.lends) offer_key();
  link.outgoing().await_answer(*this);
  post_parcel({});
  link.outgoing().announced(bytes_.size() + said_.header_length);
  return true;
}

/// Offers to the receiver that RMA hardware reads the message here.
void send_operation::offer_key() {
  const std::size_t size = bytes_.size();
  const bool fits = size >= outgoing_messages::least_lent && size <= outgoing_messages::most_lent &&
                    bytes_.contiguous() && !bytes_.on_device();
  if (!fits || !endpoint()->messages().offers_keys()) return;
  fetched_.end();  // of a try that found no memory for its header
  if (!fetched_.begin(worker().context(), bytes_.from(0))) return;  // then it goes in pieces
  const rma_offer offer{reinterpret_cast<std::uintptr_t>(bytes_.from(0).data()), fetched_.key()};
  if (offer.key.empty() || offer.key.size() > rma_offer::most_key ||
      header_size_ + offer.size() > worker().ucx().largest_header()) {
    return fetched_.end();
  }
  const std::span<std::byte> into = header_room(header_size_ + offer.size());
  offer.encode(into.last(offer.size()));
  header_size_ = into.size();
  said_.keyed = true;
}

bool send_operation::go_streaming() {
  if (bytes_.size() == 0) {
    step_ = step::over;
    endpoint()->messages().outgoing().all_said(*this);
    end_if_over();
    return true;
  }
  send_pieces();
  return all_posted() || stopped();
}

/// Returns an error where nothing was sent and the payload may go in smaller pieces.
ucs_status_t send_operation::post_parcel(std::span<const std::byte> payload) {
  if (step_ == step::unsaid) step_ = step::said;
  said_.session = endpoint()->session().number();
  said_.number = endpoint()->messages().outgoing().next_number();
  said_.credit = endpoint()->messages().incoming().take_credit();
  if (said_.lends) lend();
  std::byte* const header = header_room(header_size_).data();
  said_.encode(std::span<std::byte, parcel::size>(header, parcel::size));
  ucp_request_param_t params = {};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  params.cb.send = &send_operation::on_header_sent;
  params.user_data = this;
  lent_ = payload.empty() || lasting_ ? lent::header : lent::header_and_payload;
  endpoint()->transfer_started();
  ucs_status_ptr_t sent =
      worker().api().am_send_nbx(endpoint()->handle(), frame_sender::parcel_id, header,
                                 header_size_, payload.data(), payload.size(), &params);
  if (UCS_PTR_IS_PTR(sent)) {
    whole_ = sent;
    retain();  // the header, and maybe the bytes, have to live until UCX has sent them
    worker().messages().lent(*this);
    end_if_over();
    return UCS_OK;
  }
  const ucs_status_t status = UCS_PTR_RAW_STATUS(sent);
  if (may_shrink(payload.size(), status)) {
    lent_ = lent::nothing;
    endpoint()->transfer_ended();
    return status;
  }
  header_returned(status);
  return UCS_OK;
}

/// Offers to the receiver that it reads the message here.
void send_operation::lend() {
  const std::span<std::byte> into = header_room(header_size_ + cma_offer::size);
  cma_offer offer;
  offer.process = static_cast<std::uint64_t>(::getpid());
  offer.address = reinterpret_cast<std::uintptr_t>(bytes_.from(0).data());
  offer.record = reinterpret_cast<std::uintptr_t>(&loan_);
  offer.token = worker().messages().loans().next_token();
  offer.encode(into.last<cma_offer::size>());
  header_size_ = into.size();
  loan_.begin(offer.token, subject_of(said_));
}

void send_operation::on_header_sent(void* request, ucs_status_t status, void* self) {
  auto& send = *static_cast<send_operation*>(self);
  const ucx_callback scope(send.worker(), request);
  send.worker().messages().returned(send);
  send.header_returned(status);
  send.release();
}

void send_operation::header_returned(ucs_status_t status) {
  lent_ = lent::nothing;
  whole_ = nullptr;
  endpoint()->transfer_ended();
  if (status != UCS_OK) {
    // The connection's failure, which is told soon, ends it; unless that was what ended UCX's part.
    step_ = step::said;
    endpoint()->lost(status);
  } else if (owes_withdrawal_) {
    endpoint()->messages().outgoing().withdraw(*this, failure_);
  }
  end_if_over();
}

/// Ends it where nothing is left to do, and UCX has nothing of the caller's.
void send_operation::end_if_over() noexcept {
  watch_peer(memory_in_use());
  const bool over = step_ == step::over || static_cast<bool>(failure_);
  if (over) loan_.end();  // first: what follows gives the memory back
  const bool is_read = lent_ != lent::nothing || sending() || fetched_.lends();
  if (over && !is_read) give_back_owned();
  if (done() || memory_in_use() || !over) return;
  endpoint()->messages().outgoing().leave(*this);
  complete(failure_);
}

/// A peer that stopped would keep UCX, and so the caller's memory, for as long as it likes.
void send_operation::watch_peer(bool wanted) noexcept {
  if (std::exchange(watched_, wanted) == wanted) return;
  message_link& link = endpoint()->messages();
  if (!wanted) return link.wait_ended();
  // Else somebody looks already.
  if (!link.awaits_peer()) worker().tick_soon();
  link.wait_began();
}

bool send_operation::granted(std::uint64_t receive, std::uint64_t length) {
  if (said_.code != parcel_code::announce || receive_ != 0 || length != bytes_.size()) return false;
  receive_ = receive;
  loan_.end();  // it did not want it so
  fetched_.end();
  if (failure_) {  // given up, and withdrawn
    end_if_over();
    return true;
  }
  send_pieces();
  return true;
}

void send_operation::acknowledged() {
  const bool is_read = loan_.lends() || fetched_.lends();
  if (said_.code == parcel_code::announce && bytes_.size() > 0 && !is_read) {
    return endpoint()->blame(errc::protocol_error, "the peer has a message that was not sent");
  }
  fetched_.end();
  step_ = step::over;
  end_if_over();
}

void send_operation::refused(std::error_code why) {
  fetched_.end();
  if (failure_) return end_if_over();
  give_up_for(why ? why : make_error_code(errc::message_refused), false);
}

/// Returns how long the next piece is: a run of the caller's as it lies there, or several that are
/// copied together.
std::size_t send_operation::next_size() const noexcept {
  const bool copies = !endpoint()->detects_failure();
  const piece_sizes& sizes = endpoint()->pieces();
  std::size_t largest = sizes.answer;
  if (copies) largest = std::min(largest, goes_in_elements() ? sizes.copied : largest_copy);
  if (streams()) largest = std::min(largest, endpoint()->messages().outgoing().longest_chunk());
  largest = shrunk(largest);
  const std::size_t run = bytes_.from(posted()).size();
  const std::size_t rest = bytes_.size() - posted();
  if (run == rest || run >= std::min(shortest_run, largest)) return std::min(run, largest);
  return std::min({rest, largest, largest_copy});
}

/// Bytes of a device go in larger pieces: each call of the driver has its price.
bool send_operation::goes_in_elements() const noexcept {
  return endpoint()->pieces().are_elements && !bytes_.on_device();
}

bool send_operation::may_post() noexcept {
  message_link& link = endpoint()->messages();
  // A piece that UCX has no room for goes out behind later ones that find room. The peer would have
  // to hold back the bytes of a stream then. Other pieces lose nothing by waiting here.
  if (goes_in_elements() && any_in_flight()) return false;
  const std::size_t next = next_size();
  if (streams() && !link.outgoing().has_room(units_of(next))) return false;
  if (bytes_.on_device()) {
    if (const std::error_code ec = stage(next)) {
      give_up_for(ec, true);
      return false;
    }
  }
  if (streams()) link.outgoing().take_room(units_of(next));
  return true;
}

/// Copies the next piece out of the device.
std::error_code send_operation::stage(std::size_t size) noexcept {
  try {
    staged_.resize(size);
  } catch (const std::bad_alloc&) {
    return errc::no_memory;
  }
  return bytes_.copy_out(posted(), staged_, deadline());
}

/// Sends a piece of a message to the receive that asked for it, or the next bytes of the stream.
piece_sender::wrapped_piece send_operation::wrap(sent_piece& piece, bool copies) {
  const std::size_t size = next_size();
  std::span<const std::byte> bytes = bytes_.from(posted());
  if (bytes_.on_device()) {
    piece.copy.swap(staged_);
    bytes = piece.copy;
  } else if (copies || bytes.size() < size) {
    piece.copy.resize(size);
    bytes_.copy_out(posted(), piece.copy, deadline());  // the host's
    bytes = piece.copy;
  }
  const std::size_t header = streams() ? say_chunk(piece) : say_piece(piece);
  return {frame_sender::parcel_id, header, bytes.first(size)};
}

/// Writes the header of what goes to the receive that asked for it; returns its length.
std::size_t send_operation::say_piece(sent_piece& piece) noexcept {
  parcel said;
  said.code = parcel_code::piece;
  said.kind = said_.kind;
  said.session = endpoint()->session().number();
  said.credit = credit_ = endpoint()->messages().incoming().take_credit();
  said.number = receive_;
  said.length = posted();
  said.encode(std::span(piece.header).first<parcel::size>());
  return parcel::size;
}

/// Likewise, of the next bytes of the stream.
std::size_t send_operation::say_chunk(sent_piece& piece) noexcept {
  message_link& link = endpoint()->messages();
  brief_parcel said;
  said.kind = message_kind::stream;
  said.session = endpoint()->session().number();
  credit_ = link.incoming().take_credit(brief_parcel::most_credit);
  said.credit = static_cast<std::uint8_t>(credit_);
  said.number = static_cast<std::uint32_t>(link.outgoing().next_number());
  if (step_ == step::unsaid) step_ = step::said;
  return said.encode(std::span(piece.header).first<brief_parcel::longest>());
}

void send_operation::taken_back(std::size_t size) noexcept {
  message_link& link = endpoint()->messages();
  link.incoming().return_credit(credit_);
  if (streams()) link.outgoing().not_said(units_of(size));
}

void send_operation::pieces_moved() {
  if (all_posted() && (streams() || receive_ != 0)) {
    step_ = step::over;
    endpoint()->messages().outgoing().all_said(*this);
  }
  end_if_over();
}

void send_operation::give_up_for(std::error_code why, bool tell_peer) noexcept {
  if (done()) return;
  if (failure_) return linger();
  failure_ = why;
  stop_pieces();
  take_back_whole();
  message_link& link = endpoint()->messages();
  if (tell_peer && place == where::unanswered && said_.code == parcel_code::announce) {
    // Of a message that it overtakes, the peer would wait for the bytes for ever.
    owes_withdrawal_ = lent_ != lent::nothing;
    if (!owes_withdrawal_) link.outgoing().withdraw(*this, why);
  }
  link.outgoing().all_said(*this);
  if (memory_in_use()) {
    move_deadline(after(worker().api().now(), worker().options().heartbeat_timeout));
    worker().tick_soon();
  }
  end_if_over();
}

/// Over sockets the message goes on as a copy. Messages that are sent whole have room at the peer,
/// which bounds these copies.
void send_operation::take_back_whole() noexcept {
  if (lent_ != lent::header_and_payload || whole_ == nullptr) return;
  if (worker().api().withdraw_send(whole_, false) == withdrawn_send::copied) lent_ = lent::header;
}

void send_operation::connection_failed(std::error_code why) noexcept {
  if (key_ && !done())
    endpoint()->messages().outgoing().left_unsent(*std::exchange(key_, std::nullopt));
  const bool waited = fetched_.lends() && failure_;
  fetched_.end();  // a peer that still reads has lost the connection, too
  if (waited) return end_if_over();
  give_up_for(why, false);
}

/// Once UCX has had the time to let go of the caller's memory and did not, the connection has to.
void send_operation::linger() noexcept {
  const clock::time_point now = worker().api().now();
  if (now < deadline()) return;
  move_deadline(after(now, worker().options().heartbeat_timeout));
  endpoint()->fail(make_error_code(errc::connection_reset),
                   if_there_is_memory("data of a send that was given up was still on its way"));
}

/// The buffer that the caller moved in goes home when UCX has let go of it.
void send_operation::give_back_owned() noexcept {
  if (!owned_) return;
  // A function of the user's has to wait until no lock is held.
  if (move_only_handler<> due = buffer_home::give_back(std::move(owned_))) {
    worker().queue_handler(std::move(due));
  }
}

std::string send_operation::describe() const {
  std::string text = "send of ";
  text.append(std::to_string(bytes_.size())).append(" bytes");
  if (said_.kind == message_kind::tagged) text.append(" with tag ");
  if (said_.kind == message_kind::active) text.append(" for handler ");
  if (!streams()) text.append(std::to_string(said_.tag));
  return text.append(" to ").append(endpoint()->peer_name());
}

void send_operation::recycle() noexcept {
  fetched_.end();
  give_back_owned();
  bytes_.clear();
  if (copy_.capacity() > most_memory_kept) copy_ = std::vector<std::byte>();
  if (staged_.capacity() > most_memory_kept) staged_ = std::vector<std::byte>();
  if (parts_table_.capacity() > most_memory_kept) parts_table_ = std::vector<std::byte>();
  if (long_header_.capacity() > most_memory_kept) long_header_ = std::vector<std::byte>();
  worker().pool_of<send_operation>().give_back(this);
}

}  // namespace ucx::detail
