#include "detail/opened_source.hpp"

#include <utility>

#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

opened_source open_once(const url& name, const io_options& each) {
  client through = client::shared(name);
  remote_region region = through.open(name.name(), access::read, each);
  return {std::move(through), std::move(region)};
}

}  // namespace

opened_source open_source(const url& name, const io_options& each) {
  if (name.name().empty()) {
    throw error(errc::bad_url, "a server can not be read: its URL lacks a name");
  }
  try {
    return open_once(name, each);
  } catch (const error& failed) {
    if (failed.code() != std::errc::connection_reset) throw;
  }
  // The connection was lost before anybody looked at it: the server may be there again.
  return open_once(name, each);
}

}  // namespace ucx::detail
