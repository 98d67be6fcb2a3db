// For one version: <ucx/pipe_stream.hpp> has taken this in.
#pragma once

#include "ucx/pipe_stream.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/pipe_options.hpp> has become <ucx/pipe_stream.hpp>"
#endif
