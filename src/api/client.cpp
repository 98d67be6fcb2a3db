#include "ucx/client.hpp"

#include <type_traits>
#include <utility>

#include "api/url_reader.hpp"
#include "base/forked_child.hpp"
#include "client/client_cache.hpp"
#include "client/client_connector.hpp"
#include "client/client_core.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"

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

result<entry> commit_file(const std::shared_ptr<client_core>& core, remote_region& file,
                          const commit_options& how, const io_options& options) {
  // A handler may destroy the file, too.
  remote_region closing = how.close ? file.share() : core_access::empty_region();
  auto done =
      ask(core, &client_core::files, &client_files::commit, file, how.durable, how.close, options);
  if (done) closing.close();
  return done;
}

}  // namespace

client::client(std::string_view server, const client_options& options, std::error_code& ec)
    : core_(connect(server, options).or_end(ec)) {}

client::client(const url& server, const client_options& options, std::error_code& ec)
    : core_(client_connector(options).connect(server).or_end(ec)) {}

client::client(const worker_address& server, const client_options& options, std::error_code& ec)
    : core_(client_connector(options).connect(server).or_end(ec)) {}

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

entry client::stat(std::string_view name, const io_options& options, std::error_code& ec) {
  return ask(core_, &client_core::names, &client_names::stat, name, options).or_end(ec);
}

bool client::exists(std::string_view name, const io_options& options, std::error_code& ec) {
  return ask(core_, &client_core::names, &client_names::exists, name, options).or_end(ec);
}

remote_region client::open(std::string_view name, access wanted, const io_options& options,
                           std::error_code& ec) {
  return ask(core_, &client_core::regions, &client_regions::open, name, wanted, options)
      .or_end(ec, core_access::empty_region());
}

directory_listing client::list_directory(std::string_view directory, const io_options& options,
                                         std::error_code& ec) {
  return ask(core_, &client_core::names, &client_names::list_directory, directory, options)
      .or_end(ec);
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
      .or_end(ec, core_access::empty_region());
}

entry client::commit(remote_region& file, const commit_options& how, const io_options& options,
                     std::error_code& ec) {
  return commit_file(core_, file, how, options).or_end(ec);
}

entry client::refresh_size(remote_region& file, std::uint64_t known, std::chrono::nanoseconds wait,
                           const io_options& options, std::error_code& ec) {
  return ask(core_, &client_core::files, &client_files::measure, file, known, wait, options)
      .or_end(ec);
}

std::vector<content_digest> client::digest(remote_region& file, const digest_range& wanted,
                                           const io_options& options, std::error_code& ec) {
  return ask(core_, &client_core::files, &client_files::digest, file, wanted, options).or_end(ec);
}

void client::remove(std::string_view name, const io_options& options, std::error_code& ec) {
  ask(core_, &client_core::files, &client_files::remove, name, options).or_end(ec);
}

void client::rename(std::string_view from, std::string_view to, const io_options& options,
                    std::error_code& ec) {
  ask(core_, &client_core::files, &client_files::rename, from, to, options).or_end(ec);
}

void client::resize(std::string_view name, std::uint64_t size, const io_options& options,
                    std::error_code& ec) {
  ask(core_, &client_core::files, &client_files::resize_by_name, name, size, options).or_end(ec);
}

void client::resize(remote_region& file, std::uint64_t size, const io_options& options,
                    std::error_code& ec) {
  ask(core_, &client_core::files, &client_files::resize, file, size, options).or_end(ec);
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
