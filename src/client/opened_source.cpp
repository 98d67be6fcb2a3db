#include "client/opened_source.hpp"

#include <utility>

#include "client/client_cache.hpp"
#include "client/client_core.hpp"
#include "client/retry_once_on_reset.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"

namespace ucx::detail {
namespace {

result<opened_source> open_once(const url& name, const io_options& each) {
  auto through = shared_client(name);
  if (!through) return through.why();
  auto region = (*through)->regions().open(name.name(), access::read, each);
  if (!region) return region.why();
  return opened_source{core_access::make_client(*std::move(through)), *std::move(region)};
}

}  // namespace

result<opened_source> open_source(const url& name, const io_options& each) {
  if (name.name().empty()) {
    return failure{errc::bad_url, "a server can not be read: its URL lacks a name"};
  }
  return retry_once_on_reset([&] { return open_once(name, each); });
}

}  // namespace ucx::detail
