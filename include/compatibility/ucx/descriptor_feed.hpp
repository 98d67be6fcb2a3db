#pragma once

// For one version.
#include "ucx/experimental/read_fd_feed.hpp"
#include "ucx/version.hpp"

#if UCXIO_OLD_NAMES
namespace ucx {

using descriptor_feed [[deprecated("ucx::experimental::read_fd_feed")]] =
    experimental::read_fd_feed;
using descriptor_feed_options [[deprecated("ucx::experimental::read_fd_feed_options")]] =
    experimental::read_fd_feed_options;

}  // namespace ucx
#endif  // UCXIO_OLD_NAMES
