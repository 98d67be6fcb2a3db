#include "ucx/filesystem.hpp"

#include <string>
#include <utility>

#include "base/or_code.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"

namespace ucx {
namespace {

/// Asks through the client that is shared. Where its connection was lost before anybody noticed,
/// the server may be there again: a question that changes nothing is asked once more.
template <class Ask>
auto look_up(const url& name, Ask&& ask) {
  try {
    client through = client::shared(name);
    return ask(through);
  } catch (const error& failed) {
    if (failed.code() != std::errc::connection_reset) throw;
  }
  client through = client::shared(name);
  return ask(through);
}

entry described(const url& name) {
  return look_up(name, [&](client& through) { return through.stat(name.name()); });
}

}  // namespace

bool exists(const url& name) {
  try {
    described(name);
    return true;
  } catch (const error& failed) {
    if (failed.code() != errc::no_such_name) throw;
    return false;
  }
}

bool exists(const url& name, std::error_code& ec) {
  return detail::or_code(ec, false, [&] { return exists(name); });
}

std::uint64_t file_size(const url& name) {
  const entry found = described(name);
  if (found.type == entry_type::directory) {
    throw error(errc::not_supported, to_string(name) + ": a directory has no size");
  }
  return found.size;
}

std::uint64_t file_size(const url& name, std::error_code& ec) {
  return detail::or_code(ec, ~std::uint64_t{0}, [&] { return file_size(name); });
}

std::chrono::system_clock::time_point last_write_time(const url& name) {
  const entry found = described(name);
  if (!found.modified) {
    throw error(errc::not_supported, to_string(name) + ": nobody knows when it was changed");
  }
  return to_system_time(*found.modified);
}

std::chrono::system_clock::time_point last_write_time(const url& name, std::error_code& ec) {
  return detail::or_code(ec, std::chrono::system_clock::time_point::min(),
                         [&] { return last_write_time(name); });
}

std::vector<entry> list_directory(const url& directory) {
  return look_up(directory,
                 [&](client& through) { return through.list_directory(directory.name()); });
}

std::vector<entry> list_directory(const url& directory, std::error_code& ec) {
  return detail::or_code(ec, std::vector<entry>(), [&] { return list_directory(directory); });
}

bool remove(const url& name) {
  try {
    client::shared(name).remove(name.name());
    return true;
  } catch (const error& failed) {
    if (failed.code() != errc::no_such_name) throw;
    return false;
  }
}

bool remove(const url& name, std::error_code& ec) {
  return detail::or_code(ec, false, [&] { return remove(name); });
}

void rename(const url& from, const url& to) {
  if (from.server() != to.server()) {
    throw error(errc::not_supported,
                "renaming " + to_string(from) + " to " + to_string(to) + ", at another server");
  }
  client::shared(from).rename(from.name(), to.name());
}

void rename(const url& from, const url& to, std::error_code& ec) {
  detail::or_code(ec, [&] { rename(from, to); });
}

void resize_file(const url& name, std::uint64_t size) {
  client::shared(name).resize(name.name(), size);
}

void resize_file(const url& name, std::uint64_t size, std::error_code& ec) {
  detail::or_code(ec, [&] { resize_file(name, size); });
}

}  // namespace ucx
