#include "carrier/carrier_worker.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <new>
#include <span>
#include <utility>

#include "carrier/carrier_endpoint.hpp"
#include "carrier/socket_status.hpp"

namespace ucx::detail {
namespace {

constexpr std::size_t most_events = 64;

}  // namespace

carrier_worker::carrier_worker(std::string name, std::shared_ptr<tls_context> tls)
    : name_(std::move(name)),
      scratch_(std::make_unique_for_overwrite<std::byte[]>(scratch_size)),
      tls_(std::move(tls)),
      cipher_scratch_(tls_ ? std::make_unique_for_overwrite<std::byte[]>(tls_context::scratch_size)
                           : nullptr),
      buffers_(segment_head::longest_payload) {}

carrier_worker::~carrier_worker() {
  if (tls_) tls_->remove(*this);
  // Those who asked are not told, as with UCX when its worker goes.
  endpoints_.clear();
  while (carrier_request* left = ended_.front()) {
    ended_.remove(*left);
    recycle(*left);
  }
}

ucs_status_t carrier_worker::open() noexcept {
  epoll_ = owned_descriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return socket_status(errno);
  waker_.descriptor = owned_descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!waker_.descriptor) return socket_status(errno);
  try {
    if (tls_) tls_->add(*this);
    if (tls_ && tls_->has_certificates()) {
      certificate_timer_ = std::make_unique<carrier_timer>([this] { check_certificates(); });
    }
  } catch (const std::bad_alloc&) {
    return UCS_ERR_NO_MEMORY;
  }
  if (certificate_timer_) {
    if (!certificate_timer_->descriptor) return socket_status(errno);
    const int descriptor = certificate_timer_->descriptor.get();
    if (const auto watched = watch(descriptor, *certificate_timer_, EPOLLIN); watched != UCS_OK) {
      return watched;
    }
  }
  if (tls_) tokens_ = tls_->version();
  return watch(waker_.descriptor.get(), waker_, EPOLLIN);
}

void carrier_worker::waker::happened(std::uint32_t) noexcept {}

void carrier_worker::signal() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ::ssize_t written = ::write(waker_.descriptor.get(), &one, sizeof one);
}

/// Takes signals back. A round does not: it may be of a thread that visits, and the one that drives
/// sleeps on.
ucs_status_t carrier_worker::arm() noexcept {
  std::uint64_t count = 0;
  if (::read(waker_.descriptor.get(), &count, sizeof count) == sizeof count) return UCS_ERR_BUSY;
  return ended_.empty() && failed_.empty() && ready_.empty() ? UCS_OK : UCS_ERR_BUSY;
}

unsigned carrier_worker::progress() noexcept {
  in_round_ = true;
  ++round_;
  if (tls_ && tls_->version() != tokens_) check_tokens();
  unsigned done = tell_ended() + tell_failed();
  std::array<::epoll_event, most_events> events;
  const int came = ::epoll_wait(epoll_.get(), events.data(), most_events, 0);
  for (int i = 0; i < came; ++i) {
    const ::epoll_event& each = events[static_cast<std::size_t>(i)];
    auto* const source = static_cast<carrier_source*>(each.data.ptr);
    if (source == &waker_) continue;
    source->happened(each.events);
    ++done;
  }
  done += look_at_ready();
  done += tell_ended() + tell_failed();
  in_round_ = false;
  buried_.clear();
  return done;
}

void carrier_worker::note_reader(const carrier_endpoint& reader) noexcept {
  const carrier_endpoint* const last = std::exchange(last_reader_, &reader);
  if (last != nullptr && last != &reader) shared_round_ = round_;
  read_round_ = round_;
}

void carrier_worker::expect_end(const carrier_endpoint& of) noexcept {
  const std::optional<std::chrono::seconds> left = of.certificate_time();
  if (!left || !certificate_timer_) return;
  const auto then = std::chrono::steady_clock::now() + *left;
  if (next_end_ && *next_end_ <= then) return;
  next_end_ = then;
  certificate_timer_->set(*left);
}

/// Connections end whose certificates have expired. It looks again when the next one does.
void carrier_worker::check_certificates() noexcept {
  next_end_.reset();
  for (const std::unique_ptr<carrier_endpoint>& each : endpoints_) each->check_token();
  for (const std::unique_ptr<carrier_endpoint>& each : endpoints_) expect_end(*each);
}

/// Connections end whose tokens were removed, or whose certificates count no more.
void carrier_worker::check_tokens() noexcept {
  tokens_ = tls_->version();
  for (const std::unique_ptr<carrier_endpoint>& each : endpoints_) each->check_token();
}

/// Those that are added meanwhile are for the next round.
unsigned carrier_worker::look_at_ready() noexcept {
  unsigned done = 0;
  const std::size_t count = ready_.size();
  for (std::size_t i = 0; i < count; ++i) {
    carrier_endpoint* const each = ready_[i];
    if (each == nullptr) continue;  // buried by one before it
    each->is_ready = false;
    ready_[i] = nullptr;
    done += each->look();
  }
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(count));
  return done;
}

unsigned carrier_worker::tell_ended() noexcept {
  unsigned done = 0;
  const std::size_t count = ended_.size();
  for (; done < count; ++done) {
    carrier_request* const each = ended_.front();
    if (each == nullptr) break;
    ended_.remove(*each);
    if (each->told != nullptr) each->told(each, each->status, each->told_with);
    each->is_over = true;
    if (each->is_freed) recycle(*each);
  }
  return done;
}

unsigned carrier_worker::tell_failed() noexcept {
  unsigned done = 0;
  for (; !failed_.empty(); ++done) {
    carrier_endpoint* const each = failed_.back();
    failed_.pop_back();
    each->tell_failure();
  }
  return done;
}

void carrier_worker::failed(carrier_endpoint& which) noexcept {
  failed_.push_back(&which);  // there is room: see add()
  wake();
}

/// The thread that drives the worker may sleep.
void carrier_worker::wake() noexcept {
  if (!in_round_) signal();
}

void carrier_worker::set_handler(const ucp_am_handler_param_t& params) {
  handlers_.at(params.id & 0xffU) = {params.cb, params.arg};
}

bool carrier_worker::deliver(carrier_endpoint& from, unsigned id, const std::byte* header,
                             std::size_t header_size, std::byte* payload, std::size_t size,
                             bool lasting) {
  const handler& found = handlers_.at(id & 0xffU);
  if (found.call == nullptr) return false;
  ucp_am_recv_param_t params = {};
  params.recv_attr = UCP_AM_RECV_ATTR_FIELD_REPLY_EP;
  params.reply_ep = reinterpret_cast<ucp_ep_h>(&from);
  if (lasting) params.recv_attr |= UCP_AM_RECV_ATTR_FLAG_DATA;
  const ucs_status_t taken = found.call(found.with, header, header_size, payload, size, &params);
  return taken == UCS_INPROGRESS;
}

void carrier_worker::announce(carrier_endpoint& from, unsigned id,
                              std::span<const std::byte> header, std::size_t size) {
  const handler& found = handlers_.at(id & 0xffU);
  if (found.call == nullptr) return;
  ucp_am_recv_param_t params = {};
  params.recv_attr = UCP_AM_RECV_ATTR_FIELD_REPLY_EP | UCP_AM_RECV_ATTR_FLAG_RNDV;
  params.reply_ep = reinterpret_cast<ucp_ep_h>(&from);
  found.call(found.with, header.data(), header.size(), &from, size, &params);
}

void carrier_worker::withdraw_place(const void* of) noexcept {
  const auto found = std::find(placed_.begin(), placed_.end(), of);
  if (found != placed_.end()) (*found)->lose_place();
}

ucs_status_t carrier_worker::watch(int descriptor, carrier_source& whom,
                                   std::uint32_t events) noexcept {
  ::epoll_event wanted = {};
  wanted.events = events;
  wanted.data.ptr = &whom;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &wanted) == 0) return UCS_OK;
  return socket_status(errno);
}

void carrier_worker::forget(int descriptor) noexcept {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

void carrier_worker::look_again(carrier_endpoint& at) noexcept {
  if (at.is_ready || at.is_buried) return;
  try {
    ready_.push_back(&at);
    at.is_ready = true;
  } catch (const std::bad_alloc&) {  // the next event of it tries again
  }
}

void carrier_worker::add(std::unique_ptr<carrier_endpoint> made) {
  // So that no round lacks memory to tell of a failure.
  const std::size_t count = endpoints_.size() + 1;
  if (failed_.capacity() < count) failed_.reserve(2 * count);
  if (ready_.capacity() < 2 * count) ready_.reserve(4 * count);
  endpoints_.push_back(std::move(made));
}

void carrier_worker::bury(carrier_endpoint& gone) noexcept {
  gone.is_buried = true;
  std::replace(ready_.begin(), ready_.end(), &gone, static_cast<carrier_endpoint*>(nullptr));
  if (!in_round_) std::erase(ready_, nullptr);
  std::erase(failed_, &gone);
  const auto found = std::find_if(endpoints_.begin(), endpoints_.end(),
                                  [&](const auto& each) { return each.get() == &gone; });
  if (found == endpoints_.end()) return;
  std::unique_ptr<carrier_source> owned = std::move(*found);
  *found = std::move(endpoints_.back());
  endpoints_.pop_back();
  bury(std::move(owned));
}

void carrier_worker::bury(std::unique_ptr<carrier_source> gone) noexcept {
  if (!in_round_) return;
  try {
    buried_.push_back(std::move(gone));
  } catch (const std::bad_alloc&) {
    static_cast<void>(gone.release());  // rather lost than told of
  }
}

carrier_request& carrier_worker::take_request(const ucp_request_param_t& params) {
  carrier_request* const taken = idle_.take();
  taken->clear();
  taken->worker = this;
  if ((params.op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK) != 0) taken->told = params.cb.send;
  if ((params.op_attr_mask & UCP_OP_ATTR_FIELD_USER_DATA) != 0) taken->told_with = params.user_data;
  return *taken;
}

void carrier_worker::end(carrier_request& request, ucs_status_t status) noexcept {
  request.status = status;
  request.waits_in = nullptr;
  request.header = request.payload = {};
  ended_.push_back(request);
  if (ended_.size() == 1) wake();
}

withdrawn_send carrier_worker::withdraw(carrier_request& request, bool may_drop) noexcept {
  if (may_drop && request.waits_in != nullptr) {
    request.waits_in->remove(request);
    end(request, UCS_ERR_CANCELED);  // flushes behind it end when the socket has room
    return withdrawn_send::dropped;
  }
  try {
    request.keep_copy();  // nothing of one that has ended
    return withdrawn_send::copied;
  } catch (const std::bad_alloc&) {
    return withdrawn_send::kept;
  }
}

void carrier_worker::free(carrier_request& request) noexcept {
  if (request.is_over) return recycle(request);
  request.is_freed = true;  // it goes behind its callback
}

void carrier_worker::recycle(carrier_request& request) noexcept { idle_.give_back(&request); }

}  // namespace ucx::detail
