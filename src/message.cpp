#include "ucx/message.hpp"

#include <mutex>

#include "detail/core_access.hpp"
#include "detail/endpoint_core.hpp"
#include "detail/message_exchange.hpp"
#include "detail/receive_starts.hpp"
#include "detail/worker_core.hpp"
#include "ucx/buffer.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"

namespace ucx {

message& message::operator=(message&& other) noexcept {
  message taken(std::move(other));
  std::swap(worker_, taken.worker_);
  std::swap(arrived_, taken.arrived_);
  return *this;
}

message::~message() {
  if (arrived_ == nullptr) return;
  const std::lock_guard guard(worker_->lock());
  worker_->messages().let_go(*arrived_);
}

message_info message::info() const noexcept {
  if (arrived_ == nullptr) return {};
  return {arrived_->said.tag, arrived_->said.length};
}

std::span<const std::byte> message::header() const noexcept {
  if (arrived_ == nullptr) return {};
  return arrived_->header;
}

bool message::is_here() const noexcept { return arrived_ != nullptr && arrived_->here(); }

std::span<const std::byte> message::data() const noexcept {
  return is_here() ? arrived_->bytes : std::span<const std::byte>();
}

request message::start_receive(std::span<std::byte> into, const io_options& options) {
  return detail::start_of(worker_, arrived_, {.only = into}, options);
}

request message::start_receive(std::span<const std::span<std::byte>> into,
                               const io_options& options) {
  return detail::start_of(worker_, arrived_, {.runs = into}, options);
}

request message::start_receive(buffer& made, std::size_t most, const io_options& options) {
  return detail::start_of(worker_, arrived_, {.made = &made, .most = most}, options);
}

request message::start_receive(buffer& made, buffer_pool& pool, const io_options& options) {
  return detail::start_of(worker_, arrived_, made, pool, options);
}

request message::start_receive(message_parts& made, std::size_t most, const io_options& options) {
  return detail::start_of(worker_, arrived_, {.parts = &made, .most = most}, options);
}

void message::receive(std::span<std::byte> into, const io_options& options) {
  start_receive(into, options).wait();
}

void message::receive(std::span<std::byte> into, std::error_code& ec, const io_options& options) {
  start_receive(into, options).wait(ec);
}

endpoint message::peer() const {
  if (arrived_ == nullptr) return detail::core_access::make_endpoint(nullptr);
  const std::lock_guard guard(worker_->lock());
  // A connection that the worker serves does not keep the worker: whoever holds it does.
  struct held {
    std::shared_ptr<detail::worker_core> worker;
    std::shared_ptr<detail::endpoint_core> core;
  };
  auto both = std::make_shared<held>();
  if (arrived_->from != nullptr) both->core = arrived_->from->weak_from_this().lock();
  if (!both->core) return detail::core_access::make_endpoint(nullptr);
  both->worker = worker_;
  detail::endpoint_core* const core = both->core.get();
  return detail::core_access::make_endpoint({std::move(both), core});
}

}  // namespace ucx
