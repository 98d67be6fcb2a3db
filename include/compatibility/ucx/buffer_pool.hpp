// For one version: <ucx/buffer.hpp> has taken this in.
#pragma once

#include "ucx/buffer.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/buffer_pool.hpp> has become <ucx/buffer.hpp>"
#endif
