// For one version: <ucx/stream_options.hpp> has taken this in.
#pragma once

#include "ucx/stream_options.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/stream_statistics.hpp> has become <ucx/stream_options.hpp>"
#endif
