// For one version: <ucx/worker_options.hpp> has taken this in.
#pragma once

#include "ucx/version.hpp"
#include "ucx/worker_options.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/staging_statistics.hpp> has become <ucx/worker_options.hpp>"
#endif
