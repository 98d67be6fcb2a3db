#include "client/client_core.hpp"

#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

client_core::client_core(ucx::worker&& driver, endpoint&& connection)
    : worker_(std::move(driver)),
      endpoint_(std::move(connection)),
      questions_(*core_access::core(worker_), *core_access::core(*endpoint_),
                 [this](std::uint64_t region) { regions_.revoked(region); }),
      regions_(questions_, *endpoint_),
      further_(questions_.server()) {
  questions_.listen();
}

client_core::~client_core() {
  questions_.end();
  endpoint_.reset();
}

std::shared_ptr<client_core> client_core::adopt(ucx::worker&& driver, endpoint&& connection) {
  return std::shared_ptr<client_core>(new client_core(std::move(driver), std::move(connection)));
}

result<std::shared_ptr<client_core>> client_core::greet(
    ucx::worker&& driver, endpoint&& connection, clock::time_point deadline,
    const std::optional<ticket_secret>& ticket) {
  const std::shared_ptr<client_core> made = adopt(std::move(driver), std::move(connection));
  client_questions& asking = made->questions_;
  const auto answered = asking.wait_for([&] { return asking.start_greet(deadline, ticket); });
  if (!answered) return answered.why();
  return made;
}

void client_core::look() noexcept { core_access::core(worker_)->look(); }

std::shared_ptr<endpoint_core> client_core::connection() const noexcept {
  return core_access::core(*endpoint_);
}

client_statistics client_core::statistics() const noexcept {
  client_statistics made;
  made.opens = regions_.opens();
  made.requests = questions_.requests();
  made.failures = questions_.failures();
  made.staging = questions_.worker().staging();
  return made;
}

void client_core::close() noexcept {
  further_.close();
  if (is_inherited()) return;
  {
    const std::lock_guard guard(questions_.worker().lock());
    try {
      questions_.session().leave();
    } catch (const std::bad_alloc&) {  // the peer learns it from the end of the connection
    }
  }
  std::error_code ignored;
  endpoint_->close(close_mode::flush, ignored);
}

void client_core::leave_at_once() noexcept {
  const std::shared_ptr<endpoint_core>& connection = core_access::core(*endpoint_);
  {
    const std::lock_guard guard(questions_.worker().lock());
    if (connection.use_count() > 1 || connection->has_requests()) return;
    try {
      questions_.session().leave();
      connection->session().say_bye({});
    } catch (const std::bad_alloc&) {  // the peer learns it from the end of the connection
    }
  }
  std::error_code ignored;
  try {
    endpoint_->close(close_mode::abort, ignored);
  } catch (const std::bad_alloc&) {  // it is aborted: what was to be done next is not
  }
}

}  // namespace ucx::detail
