// The side of raw UCX that reads and writes.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "raw_messages.hpp"
#include "raw_ucx.hpp"
#include "seconds_since.hpp"

namespace ucx::benchmarks {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::uint64_t most_unconfirmed = std::uint64_t{16} << 20U;

/// Looks at the clock often enough for a pass of some tens of milliseconds.
unsigned calls_per_look(std::size_t call) { return call >= (std::size_t{256} << 10U) ? 4 : 32; }

}  // namespace

raw_client::raw_client(const raw_fabric& fabric, const raw_target& target, std::uint64_t region)
    : worker_(fabric), target_(target), region_(region) {
  owner_ = worker_.connect(target.address);
  require(ucp_ep_rkey_unpack(owner_, target.key.data(), &key_), "unpacking a key");
  if (!fabric.messages) return;
  worker_.handle_messages(data, &raw_client::on_data, this);
  worker_.handle_messages(confirmation, &raw_client::on_confirmation, this);
  const std::vector<std::byte> address = worker_.address();
  sender_.send(owner_, hello, {}, address);
  progress_until([&] { return confirmations_ > 0 && sender_.in_flight() == 0; });
}

raw_client::~raw_client() {
  ucp_rkey_destroy(key_);
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  // Without peer failure handling UCX refuses to force; nothing is in flight, so it is quick.
  ucs_status_ptr_t closing = ucp_ep_close_nbx(owner_, &params);
  if (UCS_PTR_IS_ERR(closing)) closing = ucp_ep_close_nbx(owner_, &(params = {}));
  if (!UCS_PTR_IS_PTR(closing)) return;
  // A second at most: of shared memory that nothing went through, UCX may wait for ever between
  // network namespaces.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  progress_until([&] {
    return ucp_request_check_status(closing) != UCS_INPROGRESS ||
           std::chrono::steady_clock::now() > until;
  });
  ucp_request_free(closing);
}

template <class Condition>
void raw_client::progress_until(Condition condition) {
  while (!condition()) worker_.progress();
}

template <class Condition>
void raw_client::progress_or_sleep_until(const raw_loop& loop, Condition condition) {
  while (!condition()) {
    if (worker_.progress() == 0 && loop.sleeps && !condition()) worker_.sleep();
  }
}

ucs_status_t raw_client::on_data(void* self, const void* header, std::size_t header_length,
                                 void* data, std::size_t length,
                                 const ucp_am_recv_param_t* params) {
  auto& client = *static_cast<raw_client*>(self);
  const raw_header answer = header_of(header, header_length);
  slot& filled = client.slots_[answer.slot];
  if ((params->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    ucp_request_param_t fetch = {};
    fetch.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    fetch.cb.recv_am = &raw_client::on_fetched;
    fetch.user_data = &filled;
    ucs_status_ptr_t started = ucp_am_recv_data_nbx(client.worker_.handle(), data,
                                                    filled.into + answer.place, length, &fetch);
    if (UCS_PTR_IS_PTR(started)) return UCS_INPROGRESS;
    require(UCS_PTR_RAW_STATUS(started), "fetching a raw message");
    filled.missing -= length;
    return UCS_OK;
  }
  std::memcpy(filled.into + answer.place, data, length);
  filled.missing -= length;
  return UCS_OK;
}

ucs_status_t raw_client::on_confirmation(void* self, const void* header, std::size_t header_length,
                                         void*, std::size_t, const ucp_am_recv_param_t*) {
  auto& client = *static_cast<raw_client*>(self);
  const raw_header answer = header_of(header, header_length);
  client.number_ = answer.client;
  client.confirmed_bytes_ += answer.length;
  ++client.confirmations_;
  return UCS_OK;
}

void raw_client::on_fetched(void* request, ucs_status_t status, std::size_t length, void* filled) {
  require(status, "fetching a raw message");
  static_cast<slot*>(filled)->missing -= length;
  ucp_request_free(request);
}

void raw_client::on_got(void* request, ucs_status_t status, void* filled) {
  require(status, "a raw get");
  static_cast<slot*>(filled)->missing = 0;
  ucp_request_free(request);
}

void raw_client::on_put(void* request, ucs_status_t status, void* self) {
  require(status, "a raw put");
  --static_cast<raw_client*>(self)->puts_in_flight_;
  ucp_request_free(request);
}

std::byte* raw_client::buffer(const raw_loop& loop, unsigned number) {
  return buffers_.data() + (number % loop.window) * loop.call;
}

void raw_client::ask(const raw_loop& loop, unsigned number, std::uint64_t offset) {
  slot& asked = slots_[number % slots];
  asked.into = buffer(loop, number);
  asked.missing = loop.call;
  if (loop.way != raw_way::rma) {
    raw_header header;
    header.offset = offset;
    header.length = loop.call;
    header.piece = loop.piece != 0 ? loop.piece : loop.call;
    header.region = region_;
    header.client = number_;
    header.rendezvous = loop.way == raw_way::rendezvous ? 1 : 0;
    header.slot = number % slots;
    sender_.send(owner_, read_request, header, {});
    return;
  }
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = &raw_client::on_got;
  params.user_data = &asked;
  ucs_status_ptr_t started =
      ucp_get_nbx(owner_, asked.into, loop.call, target_.base + offset, key_, &params);
  if (UCS_PTR_IS_PTR(started)) return;
  require(UCS_PTR_RAW_STATUS(started), "a raw get");
  asked.missing = 0;
}

void raw_client::begin_reading(const raw_loop& loop) {
  buffers_.resize(std::max(buffers_.size(), loop.window * loop.call));
  asked_ = taken_ = 0;
}

/// Keeps the window full, unless it is stopping, and takes what has come; returns how much.
unsigned raw_client::read_on(const raw_loop& loop, bool stopping) {
  const auto place = [&](std::uint64_t number) {
    return call_offset(number, loop.call, loop.stride, target_.size);
  };
  const unsigned before = taken_;
  for (; !stopping && asked_ - taken_ < loop.window; ++asked_) ask(loop, asked_, place(asked_));
  const unsigned came = worker_.progress();
  for (; taken_ != asked_ && slots_[taken_ % slots].missing == 0; ++taken_) {
    last_offset_ = place(taken_);
    check_pattern({slots_[taken_ % slots].into, loop.call}, last_offset_);
  }
  if (loop.sleeps && came == 0 && taken_ == before) worker_.sleep();
  return taken_ - before;
}

double raw_client::read(const raw_loop& loop, std::chrono::nanoseconds duration) {
  raw_client* const only = this;
  return read_at_once(std::span(&only, 1), loop, duration);
}

void raw_client::read_one(const raw_loop& loop, std::uint64_t offset, std::span<std::byte> into) {
  begin_reading(loop);
  ask(loop, 0, offset);
  progress_until([&] { return slots_[0].missing == 0; });
  std::memcpy(into.data(), slots_[0].into, into.size());
}

double raw_client::read_at_once(std::span<raw_client* const> readers, const raw_loop& loop,
                                std::chrono::nanoseconds duration) {
  for (raw_client* const each : readers) each->begin_reading(loop);
  const unsigned look = calls_per_look(loop.call);
  const clock::time_point start = clock::now();
  const clock::time_point until = start + duration;
  std::uint64_t taken = 0;
  std::uint64_t looked = 0;
  bool stopping = false;
  for (bool more = true; more;) {
    more = false;
    for (raw_client* const each : readers) {
      taken += each->read_on(loop, stopping);
      more = more || !stopping || each->asked_ != each->taken_;
    }
    if (taken / look == looked) continue;
    looked = taken / look;
    stopping = stopping || clock::now() >= until;
  }
  return static_cast<double>(taken) / seconds_since(start);
}

void raw_client::put(const raw_loop& loop, std::uint64_t offset, std::span<const std::byte> from) {
  if (loop.way == raw_way::message) {
    const std::size_t piece = loop.piece != 0 ? loop.piece : loop.call;
    raw_header header;
    header.region = region_;
    header.client = number_;
    for (std::size_t at = 0; at < from.size(); at += piece) {
      header.offset = offset + at;
      sender_.send(owner_, write_request, header,
                   from.subspan(at, std::min(piece, from.size() - at)));
    }
    return;
  }
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = &raw_client::on_put;
  params.user_data = this;
  ucs_status_ptr_t started =
      ucp_put_nbx(owner_, from.data(), from.size(), target_.base + offset, key_, &params);
  if (UCS_PTR_IS_PTR(started)) {
    ++puts_in_flight_;
  } else {
    require(UCS_PTR_RAW_STATUS(started), "a raw put");
  }
}

double raw_client::write(const raw_loop& loop, std::span<const std::byte> from,
                         std::chrono::nanoseconds duration) {
  const bool confirmed = loop.way == raw_way::message;
  const std::size_t messages = loop.piece != 0 ? (loop.call + loop.piece - 1) / loop.piece : 1;
  const unsigned look = calls_per_look(loop.call);
  confirmed_bytes_ = 0;
  const clock::time_point start = clock::now();
  const clock::time_point until = start + duration;
  std::uint64_t written = 0;
  std::uint64_t calls = 0;
  do {
    progress_or_sleep_until(loop, [&] {
      return puts_in_flight_ < loop.window && sender_.in_flight() < loop.window * messages &&
             (!confirmed || written - confirmed_bytes_ < most_unconfirmed);
    });
    last_offset_ = call_offset(calls, loop.call, loop.stride, target_.size);
    put(loop, last_offset_, from.first(loop.call));
    written += loop.call;
    if (!loop.flushes) continue;
    progress_until([&] { return !confirmed || confirmed_bytes_ == written; });
    if (!confirmed) flush(loop);
  } while (++calls % look != 0 || clock::now() < until);
  progress_or_sleep_until(loop, [&] { return puts_in_flight_ == 0 && sender_.in_flight() == 0; });
  if (confirmed) {
    progress_or_sleep_until(loop, [&] { return confirmed_bytes_ == written; });
  } else {
    flush(loop);
  }
  return static_cast<double>(calls) / seconds_since(start);
}

void raw_client::flush(const raw_loop& loop) {
  const ucp_request_param_t params = {};
  ucs_status_ptr_t flushing = ucp_ep_flush_nbx(owner_, &params);
  if (!UCS_PTR_IS_PTR(flushing)) return require(UCS_PTR_RAW_STATUS(flushing), "a raw flush");
  progress_or_sleep_until(loop,
                          [&] { return ucp_request_check_status(flushing) != UCS_INPROGRESS; });
  require(ucp_request_check_status(flushing), "a raw flush");
  ucp_request_free(flushing);
}

}  // namespace ucx::benchmarks
