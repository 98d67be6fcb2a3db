// The source that adapters read: a region that was opened by URL, and the client that keeps it
// open.
#pragma once

#include <optional>

#include "base/result.hpp"
#include "ucx/client.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/url.hpp"

namespace ucx::detail {

struct opened_source {
  std::optional<client> through;
  remote_region region;
};

/// Opens a URL for reading over the connection that all share. Errors: those of opening; bad_url
/// where it has no name.
result<opened_source> open_source(const url& name, const io_options& each);

}  // namespace ucx::detail
