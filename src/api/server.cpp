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
using published = std::shared_ptr<detail::published_name>;

/// Runs `publish` on a server that was made, and makes a publication of what it gives.
template <class Publish>
publication make(const std::shared_ptr<detail::server_core>& core, std::string& what,
                 std::error_code& ec, Publish&& publish) {
  publication made;
  ec.clear();
  if (core && detail::is_forked_child()) {
    what = "publishing";
    ec = errc::forked_child;
  } else if (core) {
    core_access::core(made) = publish(*core);
  } else {
    what = "publishing on a server that was moved from, or not made";
    ec = errc::closed;
  }
  return made;
}

template <class Publish>
publication make_or_throw(const std::shared_ptr<detail::server_core>& core, Publish&& publish) {
  std::string what;
  std::error_code ec;
  publication made = make(core, what, ec,
                          [&](detail::server_core& made_of) { return publish(made_of, what, ec); });
  if (ec) throw error(ec, what);
  return made;
}

}  // namespace

server::server(const server_options& options) {
  std::string what;
  std::error_code ec;
  core_ = detail::server_core::make(options, what, ec);
  if (ec) throw error(ec, what);
}

server::server(const server_options& options, std::error_code& ec) {
  std::string what;
  ec.clear();
  core_ = detail::server_core::make(options, what, ec);
}

server::server(std::shared_ptr<detail::server_core> core) noexcept : core_(std::move(core)) {}

server::server(server&& other) noexcept = default;

server& server::operator=(server&& other) noexcept {
  if (this != &other) {
    close();
    core_ = std::move(other.core_);
  }
  return *this;
}

server::~server() { close(); }

publication server::publish(std::string_view name, std::span<std::byte> bytes, access granted) {
  return make_or_throw(core_, [&](auto& core, std::string& what, std::error_code& ec) {
    return core.publish(name, bytes, granted, std::nullopt, what, ec);
  });
}

publication server::publish(std::string_view name, std::span<std::byte> bytes, access granted,
                            std::error_code& ec) {
  std::string what;
  return make(core_, what, ec, [&](auto& core) {
    return core.publish(name, bytes, granted, std::nullopt, what, ec);
  });
}

publication server::publish(std::string_view name, std::span<std::byte> bytes, access granted,
                            const memory_place& expected) {
  return make_or_throw(core_, [&](auto& core, std::string& what, std::error_code& ec) {
    return core.publish(name, bytes, granted, expected, what, ec);
  });
}

publication server::publish(std::string_view name, std::span<std::byte> bytes, access granted,
                            const memory_place& expected, std::error_code& ec) {
  std::string what;
  return make(core_, what, ec,
              [&](auto& core) { return core.publish(name, bytes, granted, expected, what, ec); });
}

publication server::publish(std::string_view name, std::span<const std::byte> bytes) {
  return publish(name, detail::without_const(bytes), access::read);
}

publication server::publish(std::string_view name, std::span<const std::byte> bytes,
                            std::error_code& ec) {
  return publish(name, detail::without_const(bytes), access::read, ec);
}

publication server::allocate(std::string_view name, std::size_t size, access granted) {
  return allocate(name, size, granted, memory_place());
}

publication server::allocate(std::string_view name, std::size_t size, access granted,
                             std::error_code& ec) {
  return allocate(name, size, granted, memory_place(), ec);
}

publication server::allocate(std::string_view name, std::size_t size, access granted,
                             const memory_place& place) {
  return make_or_throw(core_, [&](auto& core, std::string& what, std::error_code& ec) {
    return core.allocate(name, size, granted, place, what, ec);
  });
}

publication server::allocate(std::string_view name, std::size_t size, access granted,
                             const memory_place& place, std::error_code& ec) {
  std::string what;
  return make(core_, what, ec,
              [&](auto& core) { return core.allocate(name, size, granted, place, what, ec); });
}

publication server::publish_file(std::string_view name, const std::filesystem::path& file,
                                 access granted) {
  return make_or_throw(core_, [&](auto& core, std::string& what, std::error_code& ec) {
    return core.publish_file(name, file, granted, what, ec);
  });
}

publication server::publish_file(std::string_view name, const std::filesystem::path& file,
                                 access granted, std::error_code& ec) {
  std::string what;
  return make(core_, what, ec,
              [&](auto& core) { return core.publish_file(name, file, granted, what, ec); });
}

publication server::publish_store(const std::filesystem::path& directory,
                                  const store_options& options) {
  return make_or_throw(core_, [&](auto& core, std::string& what, std::error_code& ec) {
    return core.publish_store(directory, options, what, ec);
  });
}

publication server::publish_store(const std::filesystem::path& directory,
                                  const store_options& options, std::error_code& ec) {
  std::string what;
  return make(core_, what, ec,
              [&](auto& core) { return core.publish_store(directory, options, what, ec); });
}

publication server::allocate_store(const store_options& options,
                                   const std::filesystem::path& within) {
  return make_or_throw(core_, [&](auto& core, std::string& what, std::error_code& ec) {
    return core.allocate_store(options, within, what, ec);
  });
}

publication server::allocate_store(const store_options& options,
                                   const std::filesystem::path& within, std::error_code& ec) {
  std::string what;
  return make(core_, what, ec,
              [&](auto& core) { return core.allocate_store(options, within, what, ec); });
}

void server::unpublish(std::string_view name) {
  std::error_code ec;
  unpublish(name, ec);
  if (ec) throw error(ec, "withdrawing \"" + std::string(name) + "\"");
}

void server::unpublish(std::string_view name, std::error_code& ec) {
  ec.clear();
  if (detail::is_forked_child()) {
    ec = errc::forked_child;
    return;
  }
  const published found = core_ ? core_->names().find(name) : nullptr;
  if (found) {
    found->close();
  } else {
    ec = core_ ? errc::no_such_name : errc::closed;
  }
}

std::vector<entry> server::list() const {
  std::vector<entry> found;
  if (!core_ || detail::is_forked_child()) return found;
  for (const published& each : core_->names().all()) found.push_back(each->described());
  return found;
}

server_address server::address() const { return core_ ? core_->address() : server_address(); }

void server::publish_address(const std::filesystem::path& file) {
  std::error_code ec;
  std::string what = "writing the address of a server that was closed";
  if (core_) core_->publish_address(file, what, ec);
  if (!core_) ec = errc::closed;
  if (ec) throw error(ec, what);
}

void server::publish_address(const std::filesystem::path& file, std::error_code& ec) {
  std::string what;
  ec.clear();
  if (core_) core_->publish_address(file, what, ec);
  if (!core_) ec = errc::closed;
}

std::string server::url() const { return url(std::string_view()); }

std::string server::url(std::string_view name) const {
  if (core_ && detail::is_forked_child()) {
    throw error(errc::forked_child, "asking for the URL of a server of the parent's");
  }
  std::string made = core_ ? core_->url(name) : std::string();
  if (made.empty()) {
    const bool open = core_ && !core_->is_closed();
    throw error(open ? errc::not_supported : errc::closed,
                open ? "asking for the URL of a server that does not listen and has no address file"
                     : "asking for the URL of a server that was closed");
  }
  return made;
}

server_statistics server::statistics() const {
  if (!core_ || detail::is_forked_child()) return {};
  return core_->statistics();
}

worker& server::worker(std::size_t number) noexcept { return core_->worker(number); }

std::size_t server::workers() const noexcept { return core_ ? core_->workers() : 0; }

void server::close() noexcept {
  if (core_ && !detail::leave_to_parent(core_)) core_->close();
}

namespace detail {

server core_access::make_server(context parent, const server_options& options,
                                std::error_code& ec) {
  std::string what;
  ec.clear();
  return server(server_core::make(std::move(parent), options, what, ec));
}

}  // namespace detail
}  // namespace ucx
