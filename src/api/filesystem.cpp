#include "ucx/filesystem.hpp"

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "client/client_cache.hpp"
#include "client/client_core.hpp"
#include "client/retry_once_on_reset.hpp"
#include "ucx/error.hpp"

namespace ucx {
namespace {

using detail::client_core;
using detail::client_files;
using detail::client_names;
using detail::failure;
using detail::result;

/// Where its connection was lost before anybody noticed, the server may be there again: a question
/// that changes nothing is asked once more.
template <class Call>
auto look_up(const url& name, Call call) {
  return detail::retry_once_on_reset(
      [&]() -> std::invoke_result_t<Call, client_names&, std::string, io_options> {
        const auto through = detail::shared_client(name);
        if (!through) return through.why();
        return ((*through)->names().*call)(name.name(), io_options());
      });
}

/// What changes something is asked once, of a server that is there.
template <class Call, class... Args>
std::invoke_result_t<Call, client_files&, const Args&..., io_options> change(const url& name,
                                                                             Call call,
                                                                             const Args&... args) {
  const auto through = detail::retry_once_on_reset([&]() -> result<std::shared_ptr<client_core>> {
    auto shared = detail::shared_client(name);
    if (!shared) return shared;
    if (const auto heard = (*shared)->names().hear(name.name()); !heard) return heard.why();
    return shared;
  });
  if (!through) return through.why();
  return ((*through)->files().*call)(args..., io_options());
}

/// It is no failure that there is none.
template <class T>
result<bool> is_there(const result<T>& found) {
  if (found) return true;
  if (found.why().code == errc::no_such_name) return false;
  return found.why();
}

result<bool> find(const url& name) { return is_there(look_up(name, &client_names::stat)); }

result<std::uint64_t> size_of(const url& name) {
  const auto found = look_up(name, &client_names::stat);
  if (!found) return found.why();
  if (found->type != entry_type::directory) return found->size;
  return failure{errc::not_supported, to_string(name) + ": a directory has no size"};
}

result<std::chrono::system_clock::time_point> time_of(const url& name) {
  const auto found = look_up(name, &client_names::stat);
  if (!found) return found.why();
  if (found->modified) return to_system_time(*found->modified);
  return failure{errc::not_supported, to_string(name) + ": nobody knows when it was changed"};
}

result<std::vector<entry>> entries_in(const url& directory) {
  auto found = look_up(directory, &client_names::list_directory);
  if (!found) return found.why();
  return std::move(found->entries);
}

result<bool> remove_one(const url& name) {
  return is_there(change(name, &client_files::remove, name.name()));
}

result<void> rename_one(const url& from, const url& to) {
  if (from.server() == to.server()) {
    return change(from, &client_files::rename, from.name(), to.name());
  }
  return failure{errc::not_supported,
                 "renaming " + to_string(from) + " to " + to_string(to) + ", at another server"};
}

result<void> resize_one(const url& name, std::uint64_t size) {
  return change(name, &client_files::resize_by_name, name.name(), size);
}

}  // namespace

bool exists(const url& name, std::error_code& ec) { return find(name).or_end(ec); }

std::uint64_t file_size(const url& name, std::error_code& ec) {
  return size_of(name).or_end(ec, ~std::uint64_t{0});
}

std::chrono::system_clock::time_point last_write_time(const url& name, std::error_code& ec) {
  return time_of(name).or_end(ec, std::chrono::system_clock::time_point::min());
}

std::vector<entry> list_directory(const url& directory, std::error_code& ec) {
  return entries_in(directory).or_end(ec);
}

bool remove(const url& name, std::error_code& ec) { return remove_one(name).or_end(ec); }

void rename(const url& from, const url& to, std::error_code& ec) {
  rename_one(from, to).or_end(ec);
}

void resize_file(const url& name, std::uint64_t size, std::error_code& ec) {
  resize_one(name, size).or_end(ec);
}

}  // namespace ucx
