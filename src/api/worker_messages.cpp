// What a worker does with messages of any peer. Apart from worker.cpp, which is about progress.
#include <memory>
#include <mutex>
#include <utility>

#include "message/message_exchange.hpp"
#include "message/receive_starts.hpp"
#include "ucx/buffer.hpp"
#include "ucx/error.hpp"
#include "ucx/message.hpp"
#include "ucx/worker.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx {

request worker::start_receive(const tag_match& wanted, std::span<std::byte> into,
                              const io_options& options) {
  return detail::start_tagged(*core_, nullptr, wanted, into, options);
}

request worker::start_receive(const tag_match& wanted, std::span<const std::span<std::byte>> into,
                              const io_options& options) {
  return detail::start_tagged(*core_, nullptr, wanted, {.runs = into}, options);
}

request worker::start_receive(const tag_match& wanted, buffer& made, std::size_t most,
                              const io_options& options) {
  return detail::start_tagged(*core_, nullptr, wanted, {.made = &made, .most = most}, options);
}

request worker::start_receive(const tag_match& wanted, buffer& made, buffer_pool& pool,
                              const io_options& options) {
  return detail::start_tagged(*core_, nullptr, wanted, made, pool, options);
}

request worker::start_receive(const tag_match& wanted, message_parts& made, std::size_t most,
                              const io_options& options) {
  return detail::start_tagged(*core_, nullptr, wanted, {.parts = &made, .most = most}, options);
}

message_info worker::receive(const tag_match& wanted, std::span<std::byte> into,
                             const io_options& options) {
  request receiving = start_receive(wanted, into, options);
  receiving.wait();
  return receiving.received();
}

message_info worker::receive(const tag_match& wanted, std::span<std::byte> into,
                             std::error_code& ec, const io_options& options) {
  request receiving = start_receive(wanted, into, options);
  receiving.wait(ec);
  return receiving.received();
}

std::optional<message_info> worker::probe(const tag_match& wanted) const {
  const std::lock_guard guard(core_->lock());
  const detail::arrived_message* const found = core_->messages().arrived().find(nullptr, wanted);
  if (found == nullptr) return {};
  return message_info{found->said.tag, found->said.length, found->said.memory};
}

std::optional<message> worker::take(const tag_match& wanted) {
  const std::lock_guard guard(core_->lock());
  detail::arrived_message* const found = core_->messages().arrived().find(nullptr, wanted);
  if (found == nullptr) return {};
  core_->messages().take_by_hand(*found);
  return detail::core_access::make_message(core_, *found);
}

void worker::on_message(std::uint64_t number, move_only_handler<message> handler) {
  std::error_code ec;
  on_message(number, std::move(handler), ec);
  if (ec) throw error(ec, "handling messages on a context without feature::am");
}

void worker::on_message(std::uint64_t number, move_only_handler<message> handler,
                        std::error_code& ec) {
  ec.clear();
  if (!core_->context().has(feature::am)) {
    ec = errc::feature_disabled;
    return;
  }
  std::shared_ptr<move_only_handler<message>> replaced;  // goes behind the lock
  if (handler) replaced = std::make_shared<move_only_handler<message>>(std::move(handler));
  {
    const std::lock_guard guard(core_->lock());
    core_->messages().handlers().exchange(number, replaced);
  }
  if (!replaced || core_->in_handler()) return;
  core_->wait_until(detail::clock::time_point::max(),
                    [&] { return !core_->messages().handlers().is_running(*replaced); });
}

}  // namespace ucx
