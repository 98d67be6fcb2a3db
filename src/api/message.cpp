#include "ucx/message.hpp"

#include <algorithm>
#include <memory_resource>
#include <mutex>
#include <new>
#include <string>
#include <variant>

#include "base/forked_child.hpp"
#include "base/result.hpp"
#include "connection/endpoint_core.hpp"
#include "cuda/device_pointer.hpp"
#include "message/message_exchange.hpp"
#include "message/receive_starts.hpp"
#include "ucx/buffer.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/receive_target.hpp"
#include "wire/message_number.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx {
namespace {

/// Returns the resource for what comes from memory of `kind`, or null.
std::pmr::memory_resource* resource_for(const memory_resources& from, memory_kind kind,
                                        missing_resource missing) {
  const bool is_reached = kind == memory_kind::host || detail::is_copied_by_driver(kind);
  std::pmr::memory_resource* const found = is_reached ? from.find(kind) : nullptr;
  if (found != nullptr || missing == missing_resource::strict) return found;
  return from.find(memory_kind::host);
}

buffer taken_from(std::pmr::memory_resource& resource, std::size_t length) {
  const std::size_t size = std::max<std::size_t>(length, 1);  // nothing has no address
  auto* const bytes = static_cast<std::byte*>(resource.allocate(size));
  try {
    return buffer({bytes, length}, [&resource, size](std::span<std::byte> gone) {
      resource.deallocate(gone.data(), size);
    });
  } catch (...) {
    resource.deallocate(bytes, size);
    throw;
  }
}

/// Makes the memory for a message, of the kind of the sender's.
detail::result<buffer> make_of_kind(const message_info& said, const memory_resources& from,
                                    missing_resource missing) {
  std::pmr::memory_resource* const taken = resource_for(from, said.memory, missing);
  if (taken == nullptr) {
    return detail::failure{errc::not_supported, "receive of a message out of " +
                                                    std::string(to_string(said.memory)) +
                                                    " memory, for which there is no resource"};
  }
  const auto length = static_cast<std::size_t>(said.length);
  try {
    return taken_from(*taken, length);
  } catch (const std::bad_alloc&) {
    return detail::failure{errc::no_memory, "receive of a message of " + std::to_string(length) +
                                                " bytes into memory of a resource"};
  }
}

}  // namespace

message_name::message_name(std::string_view owner, std::uint32_t number) noexcept
    : owner_(owner), number_(detail::message_number(owner, number)) {}

message& message::operator=(message&& other) noexcept {
  message taken(std::move(other));
  std::swap(worker_, taken.worker_);
  std::swap(arrived_, taken.arrived_);
  return *this;
}

message::~message() {
  if (arrived_ == nullptr || detail::leave_to_parent(worker_)) return;
  const std::lock_guard guard(worker_->lock());
  worker_->messages().let_go(*arrived_);
}

message_info message::info() const noexcept {
  if (arrived_ == nullptr) return {};
  return {arrived_->said.tag, arrived_->said.length, arrived_->said.memory};
}

std::span<const std::byte> message::header() const noexcept {
  if (arrived_ == nullptr) return {};
  return arrived_->header;
}

bool message::has_payload() const noexcept { return arrived_ != nullptr && arrived_->here(); }

std::span<const std::byte> message::data() const noexcept {
  return has_payload() ? arrived_->bytes : std::span<const std::byte>();
}

request message::start_receive(const receive_target& into, const io_options& options) {
  const auto* const place = std::get_if<receive_target::buffer_by_kind>(&into.form_);
  if (place == nullptr) return detail::start_of(worker_, arrived_, into, options);
  // A receive of another form says what is wrong, and tells the sender.
  if (arrived_ == nullptr || info().length > place->max_size) {
    return detail::start_of(worker_, arrived_, {*place->made, place->max_size}, options);
  }
  detail::result<buffer> made = make_of_kind(info(), *place->from, place->missing);
  if (!made) return detail::failed_request(made.why().code, made.why().text);
  request started = detail::start_of(worker_, arrived_, made->bytes(), options);
  // A second receive fails at once: the memory of the first one may be filled at this moment.
  if (!started.done() || !started.error()) *place->made = *std::move(made);
  return started;
}

void message::receive(const receive_target& into, const io_options& options, std::error_code& ec) {
  start_receive(into, options).wait(ec);
}

endpoint message::peer() const {
  if (arrived_ == nullptr) return detail::core_access::make_endpoint(nullptr);
  auto both = std::make_shared<detail::core_access::served>();
  const std::lock_guard guard(worker_->lock());
  std::shared_ptr<detail::endpoint_core> from;
  if (arrived_->from != nullptr) from = arrived_->from->weak_from_this().lock();
  return detail::core_access::make_served_endpoint(std::move(both), worker_, std::move(from));
}

}  // namespace ucx
