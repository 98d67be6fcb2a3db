#include "client/connecting_client.hpp"

#include <mutex>
#include <new>
#include <vector>

#include "base/deadline.hpp"
#include "base/if_there_is_memory.hpp"
#include "client/client_core.hpp"
#include "connection/endpoint_core.hpp"
#include "os/resolver.hpp"
#include "os/socket_file.hpp"
#include "store/address_file.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Returns where the server is, as far as that is known without asking anybody.
result<destination> destination_of(const url& server) {
  if (server.empty()) return failure{errc::bad_url, "connecting to a URL that is empty"};
  if (!server.address_file().empty()) {
    auto where = address_file::read(server.address_file());
    if (!where) return where.why();
    return destination(peer_address(where->address));
  }
  if (!server.socket_file().empty()) {
    if (const auto there = check_socket_file(server.socket_file()); !there) return there.why();
    return destination(std::vector{socket_address("unix:" + server.socket_file())});
  }
  destination named(named_host{server.host(), server.port()});
  named.towards = name_of_port(*named.host);
  return named;
}

/// The scheme decides, and nothing falls back.
result<void> check_transports(const url& server, const context_core& parent) {
  const bool by_sockets = server.is_socket() || server.is_tls();
  const bool fits = by_sockets == !parent.is_of_ucx() && server.is_tls() == parent.is_by_tls();
  if (fits) return {};
  return failure{errc::bad_configuration,
                 "the scheme of the URL means other transports than those of the worker's context"};
}

}  // namespace

request connecting_client::start(const std::shared_ptr<worker_core>& over, const url& server,
                                 const io_options& options,
                                 std::function<void(std::shared_ptr<client_core>)> then) {
  const auto refused = [&server](failure why) {
    why.text = to_string(server.server()) + ": " + why.text;
    return failed_request(std::move(why));
  };
  if (over->is_inherited()) return refused({errc::forked_child, "connecting"});
  auto to = destination_of(server);
  if (!to) return refused(std::move(to.why()));
  if (auto fits = check_transports(server, over->context()); !fits) {
    return refused(std::move(fits.why()));
  }
  auto made = std::make_unique<connecting_client>(server.server(), std::move(then));
  const std::lock_guard guard(over->lock());
  std::chrono::nanoseconds timeout = options.timeout;
  if (timeout <= timeout.zero()) timeout = over->options().connect_timeout;
  connecting_client& started = *made.release();
  started.operation::start(over, over->deadline_after(timeout));
  started.begin(*std::move(to), over->deadline_after(timeout));
  return core_access::make_request(&started);
}

void connecting_client::begin(destination to, clock::time_point deadline) {
  until_ = deadline;
  try {
    connector_ = connector::start(worker().shared_from_this(), std::move(to), endpoint_options(),
                                  deadline, [this](connector& by) { connected(by); });
  } catch (const std::bad_alloc&) {
    finish(failure{errc::no_memory});
  }
}

void connecting_client::connected(connector& by) noexcept {
  try {
    if (!by.failure()) return greet(by.take());
    failure why{by.failure(), "connecting", by.ucx_status()};
    if (!by.words().empty()) why.text += " (" + by.words() + ")";
    finish(why);
  } catch (const std::bad_alloc&) {
    finish(failure{errc::no_memory});
  }
}

void connecting_client::greet(std::shared_ptr<endpoint_core> connection) {
  made_ = client_core::adopt(core_access::make_worker(worker().shared_from_this()),
                             core_access::make_endpoint(std::move(connection)));
  operation* const greeting = core_access::take(made_->start_greet(until_));
  adopt(*greeting);
}

void connecting_client::member_ended(operation& member, std::error_code outcome) noexcept {
  if (done()) return;
  if (outcome) {
    return finish(failure{outcome, if_there_is_memory([&] { return failure_text(member); }),
                          member.ucx_status()});
  }
  made_->server().set_address(server_);
  finish({});
}

/// Connector and client go in a round, without the lock. Either may have called this, within UCX,
/// and who waits for neither may drop the request.
void connecting_client::finish(const result<void>& outcome) noexcept {
  std::error_code why;
  if (outcome) {
    then_(std::move(made_));
  } else {
    why = outcome.why().code;
    ucx_status_ = outcome.why().ucx_status;
    text_ = if_there_is_memory([&] { return to_string(server_) + ": " + outcome.why().text; });
  }
  then_ = nullptr;
  if (connector_ && !connector_->done()) connector_->cancel();
  // In a round a connection ends without waiting.
  try {
    worker().queue_handler(
        [first = std::move(connector_), then = std::move(made_)]() mutable { then.reset(); });
  } catch (const std::bad_alloc&) {  // they are gone
  }
  complete(why);
}

void connecting_client::give_up(errc why) noexcept {
  if (done()) return;
  const auto text = if_there_is_memory("connecting");
  retain();  // a group's reference goes with its end
  finish(failure{make_error_code(why), text});
  give_up_members(why);
  release();
}

std::string connecting_client::describe() const {
  return done() && !text_.empty() ? text_ : to_string(server_) + ": connecting";
}

}  // namespace ucx::detail
