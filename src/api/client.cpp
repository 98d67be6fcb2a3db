#include "ucx/client.hpp"

#include <type_traits>
#include <utility>

#include "api/url_reader.hpp"
#include "base/forked_child.hpp"
#include "client/client_cache.hpp"
#include "client/client_connector.hpp"
#include "client/client_core.hpp"
#include "client/connecting_client.hpp"
#include "client/worker_clients.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"

namespace ucx {
namespace {

using detail::client_connector;
using detail::client_core;
using detail::client_files;
using detail::client_names;
using detail::client_regions;
using detail::core_access;
using detail::failure;
using detail::further_clients;
using detail::result;

constexpr const char* no_client = "using a client that was moved from, or not made";

result<void> no_visitor() {
  return failure{errc::invalid_argument, "visiting names with an empty visitor"};
}

/// Has a part of a client, if it was made, do something. By value: a handler may destroy the client
/// meanwhile, or the visitor of a list.
template <class Part, class Call, class... Args>
std::invoke_result_t<Call, Part&, Args...> ask(std::shared_ptr<client_core> kept,
                                               Part& (client_core::*part)() noexcept, Call call,
                                               Args&&... args) {
  if (!kept) return failure{errc::closed, no_client};
  return ((*kept.*part)().*call)(std::forward<Args>(args)...);
}

/// As `ask`, of a call that is a request.
template <class Part, class Call, class... Args>
request begin(const std::shared_ptr<client_core>& core, Part& (client_core::*part)() noexcept,
              Call call, Args&&... args) {
  if (!core) return detail::failed_request(errc::closed, no_client);
  return (((*core).*part)().*call)(std::forward<Args>(args)...);
}

result<std::shared_ptr<client_core>> connect(std::string_view server,
                                             const client_options& options) {
  const auto where = detail::url_reader::read(server);
  if (!where) return where.why();
  return client_connector(options).connect(*where);
}

result<std::shared_ptr<client_core>> successor_of(std::shared_ptr<client_core> core) {
  if (!core) return failure{errc::closed, no_client};
  return further_clients::successor(std::move(core));
}

/// The first of the connections to a server is the client's own.
result<std::shared_ptr<client_core>> lane_of(std::shared_ptr<client_core> core,
                                             std::size_t number) {
  if (!core) return failure{errc::closed, no_client};
  return number == 0 ? core : core->further().lane(number);
}

}  // namespace

client::client(std::string_view server, const client_options& options, std::error_code& ec)
    : core_(connect(server, options).or_end(ec)) {}

client::client(const url& server, const client_options& options, std::error_code& ec)
    : core_(client_connector(options).connect(server).or_end(ec)) {}

client::client(const worker_address& server, const client_options& options, std::error_code& ec)
    : core_(client_connector(options).connect(server).or_end(ec)) {}

request client::start_connect(ucx::worker& driven, const url& server, client& made,
                              const io_options& options) {
  made = client();
  if (!core_access::core(driven)) {
    return detail::failed_request(errc::closed, "connecting over a worker that was not made");
  }
  return detail::connecting_client::start(
      core_access::core(driven), server, options,
      [&made](std::shared_ptr<client_core> core) { core_access::core(made) = std::move(core); });
}

request client::start_shared(ucx::worker& driven, const url& server, client& found,
                             const io_options& options) {
  found = client();
  if (!core_access::core(driven)) {
    return detail::failed_request(errc::closed, "connecting over a worker that was not made");
  }
  return detail::worker_clients::start(
      core_access::core(driven), server, options,
      [&found](std::shared_ptr<client_core> core) { core_access::core(found) = std::move(core); });
}

client client::shared(const url& server, std::error_code& ec) {
  return core_access::make_client(detail::heard_client(server).or_end(ec));
}

void client::set_shared_idle_timeout(std::chrono::nanoseconds timeout) {
  detail::set_linger(timeout);
}

client::client(client&& other) noexcept = default;
client& client::operator=(client&& other) noexcept {
  const client before(std::move(*this));
  core_ = std::move(other.core_);
  return *this;
}
client::~client() { detail::leave_to_parent(core_); }

client client::share() const { return core_access::make_client(core_); }

std::vector<entry> client::list(const io_options& options, std::error_code& ec) {
  return ask(core_, &client_core::names, &client_names::list, options).or_end(ec);
}

request client::start_list(std::vector<entry>& found, const io_options& options) {
  return begin(core_, &client_core::names, &client_names::start_list, found, options);
}

entry client::stat(std::string_view name, const io_options& options, std::error_code& ec) {
  return ask(core_, &client_core::names, &client_names::stat, name, options).or_end(ec);
}

request client::start_stat(std::string_view name, entry& found, const io_options& options) {
  return begin(core_, &client_core::names, &client_names::start_stat, name, found, options);
}

bool client::exists(std::string_view name, const io_options& options, std::error_code& ec) {
  return ask(core_, &client_core::names, &client_names::exists, name, options).or_end(ec);
}

remote_region client::open(std::string_view name, access wanted, const io_options& options,
                           std::error_code& ec) {
  return ask(core_, &client_core::regions, &client_regions::open, name, wanted, options)
      .or_end(ec, remote_region());
}

request client::start_open(std::string_view name, access wanted, remote_region& made,
                           const io_options& options) {
  return begin(core_, &client_core::regions, &client_regions::start_open, name, wanted, made,
               options);
}

directory_listing client::list_directory(std::string_view directory, const io_options& options,
                                         std::error_code& ec) {
  return ask(core_, &client_core::names, &client_names::list_directory, directory, options)
      .or_end(ec);
}

request client::start_list_directory(std::string_view directory, directory_listing& found,
                                     const io_options& options) {
  return begin(core_, &client_core::names, &client_names::start_list_directory, directory, found,
               options);
}

void client::visit(const entry_visitor& visitor, const io_options& options, std::error_code& ec) {
  if (!visitor) return no_visitor().or_end(ec);
  ask(core_, &client_core::names, &client_names::visit, visitor, options).or_end(ec);
}

std::uint64_t client::visit_directory(std::string_view directory, const entry_visitor& visitor,
                                      const io_options& options, std::error_code& ec) {
  if (!visitor) {
    no_visitor().or_end(ec);
    return 0;
  }
  return ask(core_, &client_core::names, &client_names::visit_directory, directory, visitor,
             options)
      .or_end(ec);
}

remote_region client::create(std::string_view name, const create_options& how,
                             const io_options& options, std::error_code& ec) {
  return ask(core_, &client_core::files, &client_files::create, name, how, options)
      .or_end(ec, remote_region());
}

request client::start_create(std::string_view name, const create_options& how, remote_region& made,
                             const io_options& options) {
  return begin(core_, &client_core::files, &client_files::start_create, name, how, made, options);
}

entry client::commit(remote_region& file, const commit_options& how, const io_options& options,
                     std::error_code& ec) {
  return ask(core_, &client_core::files, &client_files::commit, file, how, options).or_end(ec);
}

request client::start_commit(remote_region& file, const commit_options& how, entry& described,
                             const io_options& options) {
  return begin(core_, &client_core::files, &client_files::start_commit, file, how, described,
               options);
}

entry client::refresh_size(remote_region& file, std::uint64_t known, std::chrono::nanoseconds wait,
                           const io_options& options, std::error_code& ec) {
  return ask(core_, &client_core::files, &client_files::measure, file, known, wait, options)
      .or_end(ec);
}

request client::start_refresh_size(remote_region& file, std::uint64_t known,
                                   std::chrono::nanoseconds wait, entry& described,
                                   const io_options& options) {
  return begin(core_, &client_core::files, &client_files::start_measure, file, known, wait,
               described, options);
}

std::vector<content_digest> client::digest(remote_region& file, const digest_range& wanted,
                                           const io_options& options, std::error_code& ec) {
  return ask(core_, &client_core::files, &client_files::digest, file, wanted, options).or_end(ec);
}

request client::start_digest(remote_region& file, const digest_range& wanted,
                             std::vector<content_digest>& found, const io_options& options) {
  return begin(core_, &client_core::files, &client_files::start_digest, file, wanted, found,
               options);
}

void client::remove(std::string_view name, const io_options& options, std::error_code& ec) {
  ask(core_, &client_core::files, &client_files::remove, name, options).or_end(ec);
}

request client::start_remove(std::string_view name, const io_options& options) {
  return begin(core_, &client_core::files, &client_files::start_remove, name, options);
}

void client::rename(std::string_view from, std::string_view to, const io_options& options,
                    std::error_code& ec) {
  ask(core_, &client_core::files, &client_files::rename, from, to, options).or_end(ec);
}

request client::start_rename(std::string_view from, std::string_view to,
                             const io_options& options) {
  return begin(core_, &client_core::files, &client_files::start_rename, from, to, options);
}

void client::make_directory(std::string_view name, const io_options& options, std::error_code& ec) {
  ask(core_, &client_core::files, &client_files::make_directory, name, options).or_end(ec);
}

request client::start_make_directory(std::string_view name, const io_options& options) {
  return begin(core_, &client_core::files, &client_files::start_make_directory, name, options);
}

void client::resize(std::string_view name, std::uint64_t size, const io_options& options,
                    std::error_code& ec) {
  ask(core_, &client_core::files, &client_files::resize, name, size, options).or_end(ec);
}

request client::start_resize(std::string_view name, std::uint64_t size, const io_options& options) {
  return begin(core_, &client_core::files, &client_files::start_resize, name, size, options);
}

void client::resize(remote_region& file, std::uint64_t size, const io_options& options,
                    std::error_code& ec) {
  ask(core_, &client_core::files, &client_files::resize_file, file, size, options).or_end(ec);
}

request client::start_resize(remote_region& file, std::uint64_t size, const io_options& options) {
  return begin(core_, &client_core::files, &client_files::start_resize_file, file, size, options);
}

std::error_code client::status() const noexcept {
  return core_ ? core_->status() : make_error_code(errc::closed);
}

const url& client::server() const noexcept {
  static const url none;
  return core_ ? core_->server().address() : none;
}

std::string client::server_version() const {
  return core_ ? core_->server().version() : std::string();
}

std::string client::identity() const { return core_ ? core_->server().identity() : std::string(); }

std::vector<std::string> client::transports() const {
  return core_ ? core_->transports() : std::vector<std::string>();
}

client_statistics client::statistics() const {
  return core_ ? core_->statistics() : client_statistics();
}

worker& client::worker() noexcept { return core_->worker(); }

endpoint client::connection() const {
  return core_access::make_endpoint(core_ ? core_->connection() : nullptr);
}

void client::close() noexcept {
  const std::shared_ptr<client_core> kept = core_;  // a handler may destroy the client
  if (kept) kept->close();
}

namespace detail {

client unheard_client(const url& server, std::error_code& ec) {
  return core_access::make_client(shared_client(server).or_end(ec));
}

client reconnected(const client& lost, std::error_code& ec) {
  return core_access::make_client(successor_of(core_access::core(lost)).or_end(ec));
}

client further_client(const client& first, std::size_t number, std::error_code& ec) {
  return core_access::make_client(lane_of(core_access::core(first), number).or_end(ec));
}

client core_access::make_client(context parent, const socket_address& server,
                                const client_options& options, std::error_code& ec) {
  return make_client(client_connector(options).connect(std::move(parent), server).or_tell(ec));
}

client core_access::make_client(context parent, const worker_address& server,
                                const client_options& options, std::error_code& ec) {
  return make_client(client_connector(options).connect(std::move(parent), server).or_tell(ec));
}

}  // namespace detail
}  // namespace ucx
