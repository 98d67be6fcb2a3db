// For one version: <ucx/stream.hpp> has taken this in.
#pragma once

#include "ucx/stream.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/remote_streambuf.hpp> has become <ucx/stream.hpp>"
#endif
