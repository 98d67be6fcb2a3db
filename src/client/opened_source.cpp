#include "client/opened_source.hpp"

#include <utility>

#include "client/twice_where_lost.hpp"
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
  return twice_where_lost([&] { return open_once(name, each); });
}

}  // namespace ucx::detail
