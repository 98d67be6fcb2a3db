#include "detail/message_operation.hpp"

#include <string>
#include <utility>

#include "detail/endpoint_core.hpp"
#include "detail/message_router.hpp"
#include "detail/remote_region_core.hpp"
#include "detail/worker_core.hpp"

namespace ucx::detail {

std::uint64_t message_table::add(message_operation& operation) {
  if (first_free_ == none) {
    slots_.push_back(slot{nullptr, 0, none});
    first_free_ = static_cast<std::uint32_t>(slots_.size() - 1);
  }
  const std::uint32_t index = first_free_;
  slot& taken = slots_[index];
  first_free_ = taken.next_free;
  taken.operation = &operation;
  ++taken.uses;
  return (std::uint64_t{taken.uses} << 32U) | index;
}

void message_table::remove(std::uint64_t id) noexcept {
  const auto index = static_cast<std::uint32_t>(id);
  slots_[index].operation = nullptr;
  slots_[index].next_free = std::exchange(first_free_, index);
}

message_operation* message_table::find(std::uint64_t id) const noexcept {
  const auto index = static_cast<std::uint32_t>(id);
  if (index >= slots_.size() || slots_[index].uses != static_cast<std::uint32_t>(id >> 32U)) {
    return nullptr;
  }
  return slots_[index].operation;
}

void message_operation::enter(std::shared_ptr<remote_region_core> region, std::uint64_t offset,
                              std::uint64_t length, clock::time_point deadline,
                              unsigned further_references) {
  region_ = std::move(region);
  offset_ = offset;
  length_ = length;
  endpoint_core& connection = region_->endpoint();
  worker_core& worker = connection.worker();
  id_ = worker.router().questions().add(*this);
  entered_ = true;
  start(worker, connection.shared_from_this(), deadline);
  for (unsigned i = 0; i < further_references; ++i) retain();
  connection.add(*this);
}

void message_operation::leave() noexcept {
  if (!std::exchange(entered_, false)) return;
  worker().router().questions().remove(id_);
  endpoint()->remove(*this);
}

void message_operation::blame_peer(const char* what) {
  // Deferred: this runs inside UCX's callback, where the endpoint can not be dropped.
  worker().defer([weak = endpoint()->weak_from_this(), what] {
    if (const auto connection = weak.lock()) {
      connection->fail(make_error_code(errc::protocol_error), what);
    }
  });
}

frame message_operation::question(opcode code) const noexcept {
  const remote_descriptor& target = region_->descriptor();
  frame asked;
  asked.code = code;
  asked.session = endpoint()->session();
  asked.request = id_;
  asked.region = target.region;
  asked.incarnation = target.incarnation;
  asked.generation = target.generation;
  return asked;
}

std::string message_operation::describe() const {
  return std::to_string(length_) + " bytes at offset " + std::to_string(offset_) + " of " +
         region_->description();
}

}  // namespace ucx::detail
