#include "ucx/client.hpp"

#include <utility>

#include "base/error_text.hpp"
#include "base/forked_child.hpp"
#include "client/client_cache.hpp"
#include "client/client_core.hpp"
#include "ucx/directory_listing.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"

namespace ucx {
namespace {

using detail::client_core;
using detail::core_access;

/// Runs `call` with places for its failure, and throws that.
template <class Call>
auto or_throw(Call&& call) {
  std::string what;
  std::error_code ec;
  auto made = call(what, ec);
  if (ec) throw error(ec, what);
  return made;
}

template <class Call>
void do_or_throw(Call&& call) {
  std::string what;
  std::error_code ec;
  call(what, ec);
  if (ec) throw error(ec, what);
}

std::shared_ptr<client_core> connect(std::string_view server, const client_options& options,
                                     std::string& what, std::error_code& ec) {
  ec.clear();
  try {
    return client_core::connect(url(server), options, what, ec);
  } catch (const error& failed) {
    ec = failed.code();
    what = detail::text_of(failed);
    return nullptr;
  }
}

constexpr const char* no_client = "using a client that was moved from, or not made";

}  // namespace

client::client(std::string_view server, const client_options& options)
    : core_(or_throw([&](auto& what, auto& ec) { return connect(server, options, what, ec); })) {}

client::client(std::string_view server, const client_options& options, std::error_code& ec) {
  std::string what;
  core_ = connect(server, options, what, ec);
}

client::client(const url& server, const client_options& options)
    : core_(or_throw(
          [&](auto& what, auto& ec) { return client_core::connect(server, options, what, ec); })) {}

client::client(const url& server, const client_options& options, std::error_code& ec) {
  std::string what;
  ec.clear();
  core_ = client_core::connect(server, options, what, ec);
}

client::client(const worker_address& server, const client_options& options)
    : core_(or_throw(
          [&](auto& what, auto& ec) { return client_core::connect(server, options, what, ec); })) {}

client::client(const worker_address& server, const client_options& options, std::error_code& ec) {
  std::string what;
  ec.clear();
  core_ = client_core::connect(server, options, what, ec);
}

client client::shared(const url& server) {
  client made;
  made.core_ =
      or_throw([&](auto& what, auto& ec) { return detail::shared_client(server, what, ec); });
  return made;
}

client client::shared(const url& server, std::error_code& ec) {
  client made;
  std::string what;
  ec.clear();
  made.core_ = detail::shared_client(server, what, ec);
  return made;
}

void client::linger(std::chrono::nanoseconds longest) { detail::set_linger(longest); }

client::client(client&& other) noexcept = default;
client& client::operator=(client&& other) noexcept {
  const client before(std::move(*this));
  core_ = std::move(other.core_);
  return *this;
}
client::~client() { detail::leave_to_parent(core_); }

client client::share() const {
  client made;
  made.core_ = core_;
  return made;
}

client client::reconnected() const {
  if (!core_) throw error(errc::closed, no_client);
  client made;
  made.core_ =
      or_throw([&](auto& what, auto& ec) { return client_core::successor(core_, what, ec); });
  return made;
}

client client::reconnected(std::error_code& ec) const {
  client made;
  std::string what;
  ec = core_ ? std::error_code() : make_error_code(errc::closed);
  if (core_) made.core_ = client_core::successor(core_, what, ec);
  return made;
}

client client::lane(std::size_t number) const {
  if (!core_) throw error(errc::closed, no_client);
  if (number == 0) return share();
  client made;
  made.core_ = or_throw([&](auto& what, auto& ec) { return core_->lane(number, what, ec); });
  return made;
}

client client::lane(std::size_t number, std::error_code& ec) const {
  client made;
  std::string what;
  ec = core_ ? std::error_code() : make_error_code(errc::closed);
  if (core_) made.core_ = number == 0 ? core_ : core_->lane(number, what, ec);
  return made;
}

std::vector<entry> client::list(const io_options& options) {
  if (!core_) throw error(errc::closed, no_client);
  return or_throw([&](auto& what, auto& ec) { return core_->list(options, what, ec); });
}

std::vector<entry> client::list(std::error_code& ec, const io_options& options) {
  std::string what;
  ec = core_ ? std::error_code() : make_error_code(errc::closed);
  return core_ ? core_->list(options, what, ec) : std::vector<entry>();
}

entry client::stat(std::string_view name, const io_options& options) {
  if (!core_) throw error(errc::closed, no_client);
  return or_throw([&](auto& what, auto& ec) { return core_->stat(name, options, what, ec); });
}

entry client::stat(std::string_view name, std::error_code& ec, const io_options& options) {
  std::string what;
  ec = core_ ? std::error_code() : make_error_code(errc::closed);
  return core_ ? core_->stat(name, options, what, ec) : entry();
}

remote_region client::open(std::string_view name, access wanted, const io_options& options) {
  if (!core_) throw error(errc::closed, no_client);
  return or_throw(
      [&](auto& what, auto& ec) { return core_->open(name, wanted, options, what, ec); });
}

remote_region client::open(std::string_view name, access wanted, std::error_code& ec,
                           const io_options& options) {
  std::string what;
  ec = core_ ? std::error_code() : make_error_code(errc::closed);
  return core_ ? core_->open(name, wanted, options, what, ec) : core_access::empty_region();
}

std::vector<entry> client::list_directory(std::string_view directory, const io_options& options) {
  return read_directory(*this, directory, options).entries;
}

std::vector<entry> client::list_directory(std::string_view directory, std::error_code& ec,
                                          const io_options& options) {
  return read_directory(*this, directory, ec, options).entries;
}

directory_listing read_directory(client& from, std::string_view directory,
                                 const io_options& options) {
  const std::shared_ptr<client_core>& core = core_access::core(from);
  if (!core) throw error(errc::closed, no_client);
  return or_throw(
      [&](auto& what, auto& ec) { return core->read_directory(directory, options, what, ec); });
}

directory_listing read_directory(client& from, std::string_view directory, std::error_code& ec,
                                 const io_options& options) {
  const std::shared_ptr<client_core>& core = core_access::core(from);
  std::string what;
  ec = core ? std::error_code() : make_error_code(errc::closed);
  return core ? core->read_directory(directory, options, what, ec) : directory_listing();
}

void visit_names(client& from, const entry_visitor& visit, const io_options& options) {
  const std::shared_ptr<client_core>& core = core_access::core(from);
  if (!core) throw error(errc::closed, no_client);
  or_throw([&](auto& what, auto& ec) {
    core->visit_names(visit, options, what, ec);
    return true;
  });
}

void visit_names(client& from, const entry_visitor& visit, std::error_code& ec,
                 const io_options& options) {
  const std::shared_ptr<client_core>& core = core_access::core(from);
  std::string what;
  ec = core ? std::error_code() : make_error_code(errc::closed);
  if (core) core->visit_names(visit, options, what, ec);
}

std::uint64_t visit_directory(client& from, std::string_view directory, const entry_visitor& visit,
                              const io_options& options) {
  const std::shared_ptr<client_core>& core = core_access::core(from);
  if (!core) throw error(errc::closed, no_client);
  return or_throw([&](auto& what, auto& ec) {
    return core->visit_directory(directory, visit, options, what, ec);
  });
}

std::uint64_t visit_directory(client& from, std::string_view directory, const entry_visitor& visit,
                              std::error_code& ec, const io_options& options) {
  const std::shared_ptr<client_core>& core = core_access::core(from);
  std::string what;
  ec = core ? std::error_code() : make_error_code(errc::closed);
  return core ? core->visit_directory(directory, visit, options, what, ec) : 0;
}

remote_region client::create(std::string_view name, const create_options& how,
                             const io_options& options) {
  if (!core_) throw error(errc::closed, no_client);
  return or_throw(
      [&](auto& what, auto& ec) { return core_->create(name, how, options, what, ec); });
}

remote_region client::create(std::string_view name, const create_options& how, std::error_code& ec,
                             const io_options& options) {
  std::string what;
  ec = core_ ? std::error_code() : make_error_code(errc::closed);
  return core_ ? core_->create(name, how, options, what, ec) : core_access::empty_region();
}

entry client::commit(remote_region& file, bool durable, const io_options& options) {
  if (!core_) throw error(errc::closed, no_client);
  return or_throw(
      [&](auto& what, auto& ec) { return core_->commit(file, durable, false, options, what, ec); });
}

entry client::commit(remote_region& file, bool durable, std::error_code& ec,
                     const io_options& options) {
  std::string what;
  ec = core_ ? std::error_code() : make_error_code(errc::closed);
  return core_ ? core_->commit(file, durable, false, options, what, ec) : entry();
}

entry client::commit(remote_region&& file, bool durable, const io_options& options) {
  std::string what = no_client;
  std::error_code ec = core_ ? std::error_code() : make_error_code(errc::closed);
  entry made = core_ ? core_->commit(file, durable, true, options, what, ec) : entry();
  if (ec) throw error(ec, what);
  file.close();
  return made;
}

entry client::commit(remote_region&& file, bool durable, std::error_code& ec,
                     const io_options& options) {
  std::string what;
  ec = core_ ? std::error_code() : make_error_code(errc::closed);
  entry made = core_ ? core_->commit(file, durable, true, options, what, ec) : entry();
  if (!ec) file.close();
  return made;
}

entry client::measure(remote_region& file, std::uint64_t known, std::chrono::nanoseconds wait,
                      const io_options& options) {
  if (!core_) throw error(errc::closed, no_client);
  return or_throw(
      [&](auto& what, auto& ec) { return core_->measure(file, known, wait, options, what, ec); });
}

entry client::measure(remote_region& file, std::uint64_t known, std::chrono::nanoseconds wait,
                      std::error_code& ec, const io_options& options) {
  std::string what;
  ec = core_ ? std::error_code() : make_error_code(errc::closed);
  return core_ ? core_->measure(file, known, wait, options, what, ec) : entry();
}

std::vector<content_digest> client::digest(remote_region& file, const digest_range& wanted,
                                           const io_options& options) {
  if (!core_) throw error(errc::closed, no_client);
  return or_throw(
      [&](auto& what, auto& ec) { return core_->digest(file, wanted, options, what, ec); });
}

std::vector<content_digest> client::digest(remote_region& file, const digest_range& wanted,
                                           std::error_code& ec, const io_options& options) {
  std::string what;
  ec = core_ ? std::error_code() : make_error_code(errc::closed);
  return core_ ? core_->digest(file, wanted, options, what, ec) : std::vector<content_digest>();
}

void client::remove(std::string_view name, const io_options& options) {
  if (!core_) throw error(errc::closed, no_client);
  do_or_throw([&](auto& what, auto& ec) { core_->remove(name, options, what, ec); });
}

void client::remove(std::string_view name, std::error_code& ec, const io_options& options) {
  std::string what;
  ec = core_ ? std::error_code() : make_error_code(errc::closed);
  if (core_) core_->remove(name, options, what, ec);
}

void client::rename(std::string_view from, std::string_view to, const io_options& options) {
  if (!core_) throw error(errc::closed, no_client);
  do_or_throw([&](auto& what, auto& ec) { core_->rename(from, to, options, what, ec); });
}

void client::rename(std::string_view from, std::string_view to, std::error_code& ec,
                    const io_options& options) {
  std::string what;
  ec = core_ ? std::error_code() : make_error_code(errc::closed);
  if (core_) core_->rename(from, to, options, what, ec);
}

void client::resize(std::string_view name, std::uint64_t size, const io_options& options) {
  if (!core_) throw error(errc::closed, no_client);
  do_or_throw([&](auto& what, auto& ec) { core_->resize(name, size, options, what, ec); });
}

void client::resize(std::string_view name, std::uint64_t size, std::error_code& ec,
                    const io_options& options) {
  std::string what;
  ec = core_ ? std::error_code() : make_error_code(errc::closed);
  if (core_) core_->resize(name, size, options, what, ec);
}

void client::resize(remote_region& file, std::uint64_t size, const io_options& options) {
  if (!core_) throw error(errc::closed, no_client);
  do_or_throw([&](auto& what, auto& ec) { core_->resize(file, size, options, what, ec); });
}

void client::resize(remote_region& file, std::uint64_t size, std::error_code& ec,
                    const io_options& options) {
  std::string what;
  ec = core_ ? std::error_code() : make_error_code(errc::closed);
  if (core_) core_->resize(file, size, options, what, ec);
}

std::error_code client::status() const noexcept {
  return core_ ? core_->status() : make_error_code(errc::closed);
}

const url& client::server() const noexcept {
  static const url none;
  return core_ ? core_->server() : none;
}

std::string client::server_version() const {
  return core_ ? core_->server_version() : std::string();
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
  if (core_) core_->close();
}

namespace detail {

client core_access::make_client(context parent, const socket_address& server,
                                const client_options& options, std::error_code& ec) {
  client made;
  std::string what;
  ec.clear();
  made.core_ = client_core::connect(std::move(parent), server, options, what, ec);
  return made;
}

client core_access::make_client(context parent, const worker_address& server,
                                const client_options& options, std::error_code& ec) {
  client made;
  std::string what;
  ec.clear();
  made.core_ = client_core::connect(std::move(parent), server, options, what, ec);
  return made;
}

}  // namespace detail
}  // namespace ucx
