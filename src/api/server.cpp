#include "ucx/server.hpp"

#include <utility>

#include "base/forked_child.hpp"
#include "base/without_const.hpp"
#include "server/published_name.hpp"
#include "server/server_core.hpp"
#include "store/store_core.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"

namespace ucx {
namespace {

using detail::core_access;
using detail::failure;
using detail::result;
using detail::server_core;
using published = std::shared_ptr<detail::published_name>;

/// Has a server that was made publish something.
template <class Publish, class... Args>
result<publication> make(const std::shared_ptr<server_core>& core, Publish publish,
                         const Args&... args) {
  if (!core)
    return failure{errc::closed, "publishing on a server that was moved from, or not made"};
  if (core->is_inherited()) return failure{errc::forked_child, "publishing"};
  auto published = (*core.*publish)(args...);
  if (!published) return published.why();
  publication made;
  core_access::core(made) = *std::move(published);
  return made;
}

result<void> publish_address_of(const std::shared_ptr<server_core>& core,
                                const std::filesystem::path& file) {
  if (core) return core->publish_address(file);
  return failure{errc::closed, "writing the address of a server that was closed"};
}

result<std::string> url_of(const std::shared_ptr<server_core>& core, std::string_view name) {
  if (core && core->is_inherited()) {
    return failure{errc::forked_child, "asking for the URL of a server of the parent's"};
  }
  std::string made = core ? core->url(name) : std::string();
  if (!made.empty()) return made;
  if (!core || core->is_closed()) {
    return failure{errc::closed, "asking for the URL of a server that was closed"};
  }
  return failure{errc::not_supported,
                 "asking for the URL of a server that does not listen and has no address file"};
}

#if UCXIO_OLD_NAMES
std::error_code withdraw(const std::shared_ptr<server_core>& core, std::string_view name) {
  if (!core) return errc::closed;
  if (core->is_inherited()) return errc::forked_child;
  const published found = core->names().find(name);
  if (!found) return errc::no_such_name;
  found->close();
  return {};
}
#endif

}  // namespace

server::server(const server_options& options, std::error_code& ec)
    : core_(server_core::make(options).or_end(ec)) {}

server::server(std::shared_ptr<detail::server_core> core) noexcept : core_(std::move(core)) {}

server::server(server&& other) noexcept = default;

server& server::operator=(server&& other) noexcept {
  server taken(std::move(other));
  std::swap(core_, taken.core_);
  return *this;
}

server::~server() { close(); }

publication server::publish(std::string_view name, std::span<std::byte> bytes, access granted,
                            const std::optional<memory_place>& expected, std::error_code& ec) {
  return make(core_, &server_core::publish, name, bytes, granted, expected).or_end(ec);
}

publication server::publish(std::string_view name, std::span<const std::byte> bytes,
                            std::error_code& ec) {
  return publish(name, detail::without_const(bytes), access::read, std::nullopt, ec);
}

publication server::allocate(std::string_view name, std::size_t size, access granted,
                             const memory_place& place, std::error_code& ec) {
  return make(core_, &server_core::allocate, name, size, granted, place).or_end(ec);
}

publication server::publish_file(std::string_view name, const std::filesystem::path& file,
                                 access granted, std::error_code& ec) {
  return make(core_, &server_core::publish_file, name, file, granted).or_end(ec);
}

publication server::publish_store(const std::filesystem::path& directory,
                                  const store_options& options, std::error_code& ec) {
  return make(core_, &server_core::publish_store, directory, options).or_end(ec);
}

publication server::allocate_store(const store_options& options,
                                   const std::filesystem::path& within, std::error_code& ec) {
  return make(core_, &server_core::allocate_store, options, within).or_end(ec);
}

#if UCXIO_OLD_NAMES
void server::unpublish(std::string_view name, std::error_code& ec) {
  detail::end_with(withdraw(core_, name), ec,
                   [name] { return "withdrawing \"" + std::string(name) + "\""; });
}
#endif

std::vector<entry> server::list() const {
  std::vector<entry> found;
  if (!core_ || core_->is_inherited()) return found;
  for (const published& each : core_->names().all()) found.push_back(each->described());
  return found;
}

server_address server::address() const { return core_ ? core_->address() : server_address(); }

void server::publish_address(const std::filesystem::path& file, std::error_code& ec) {
  publish_address_of(core_, file).or_end(ec);
}

std::string server::url(std::string_view name, std::error_code& ec) const {
  return url_of(core_, name).or_end(ec);
}

std::string server::invite(std::string_view name, std::error_code& ec) {
  return core_->invite(name).or_end(ec);
}

void server::reload_certificates(std::error_code& ec) { core_->reload_certificates().or_end(ec); }

server_statistics server::statistics() const {
  if (!core_ || core_->is_inherited()) return {};
  return core_->statistics();
}

void server::set_rules(std::optional<access_rules> rules) {
  if (!core_ || core_->is_inherited()) return;
  core_->set_rules(rules ? core_access::lines(*rules) : nullptr);
}

worker& server::worker(std::size_t number) noexcept { return core_->worker(number); }

std::size_t server::workers() const noexcept { return core_ ? core_->workers() : 0; }

void server::close() noexcept {
  if (!core_ || detail::leave_to_parent(core_)) return;
  const std::shared_ptr<server_core> kept = core_;  // a handler may destroy the server
  kept->close();
}

namespace detail {

server core_access::make_server(context parent, const server_options& options,
                                std::error_code& ec) {
  return server(server_core::make(std::move(parent), options).or_tell(ec));
}

}  // namespace detail
}  // namespace ucx
