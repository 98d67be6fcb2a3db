// For one version: <ucx/completion_handler.hpp> has taken this in.
#pragma once

#include "ucx/completion_handler.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/awaitable.hpp> has become <ucx/completion_handler.hpp>"
#endif
