#pragma once

// For one version: the functions of `std::filesystem`, for URLs. `client::shared()` gives the
// client that has members of these names.
#include <chrono>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "ucx/client.hpp"
#include "ucx/entry.hpp"
#include "ucx/error.hpp"
#include "ucx/url.hpp"
#include "ucx/version.hpp"

#if UCXIO_OLD_NAMES
namespace ucx {

namespace detail {

inline void refuse_url(std::error_code& ec, const url& name, const char* why) {
  if (&ec == &throws) throw error(errc::not_supported, to_string(name) + why);
  ec = errc::not_supported;
}

inline entry stat_url(const url& name, std::error_code& ec) {
  client through = client::shared(name, ec);
  return ec ? entry() : through.stat(name.name(), {}, ec);
}

}  // namespace detail

[[deprecated("client::shared(name).exists(name.name())")]] inline bool exists(
    const url& name, std::error_code& ec = throws) {
  client through = client::shared(name, ec);
  return !ec && through.exists(name.name(), {}, ec);
}

[[deprecated("client::shared(name).stat(name.name()).size")]] inline std::uint64_t file_size(
    const url& name, std::error_code& ec = throws) {
  const entry found = detail::stat_url(name, ec);
  if (!ec && found.type != entry_type::directory) return found.size;
  if (!ec) detail::refuse_url(ec, name, ": a directory has no size");
  return ~std::uint64_t{0};
}

[[deprecated("entry::modified")]] inline std::chrono::system_clock::time_point last_write_time(
    const url& name, std::error_code& ec = throws) {
  const entry found = detail::stat_url(name, ec);
  if (found.modified) return to_system_time(*found.modified);
  if (!ec) detail::refuse_url(ec, name, ": it is not known when it was changed");
  return std::chrono::system_clock::time_point::min();
}

[[deprecated("client::shared(name).list_directory(name.name())")]] inline std::vector<entry>
list_directory(const url& directory, std::error_code& ec = throws) {
  client through = client::shared(directory, ec);
  if (ec) return {};
  return std::move(through.list_directory(directory.name(), {}, ec).entries);
}

[[deprecated("client::shared(name).remove(name.name())")]] inline bool remove(
    const url& name, std::error_code& ec = throws) {
  client through = client::shared(name, ec);
  if (ec) return false;
  try {
    through.remove(name.name());
    return true;
  } catch (const error& failed) {
    if (failed.code() == errc::no_such_name) return false;
    if (&ec == &throws) throw;
    ec = failed.code();
    return false;
  }
}

[[deprecated("client::shared(from).rename(from.name(), to.name())")]] inline void rename(
    const url& from, const url& to, std::error_code& ec = throws) {
  if (from.server() != to.server()) {
    return detail::refuse_url(ec, from, ": it can not be renamed to another server");
  }
  client through = client::shared(from, ec);
  if (!ec) through.rename(from.name(), to.name(), {}, ec);
}

[[deprecated("client::shared(name).resize(name.name(), size)")]] inline void resize_file(
    const url& name, std::uint64_t size, std::error_code& ec = throws) {
  client through = client::shared(name, ec);
  if (!ec) through.resize(name.name(), size, {}, ec);
}

}  // namespace ucx
#endif
