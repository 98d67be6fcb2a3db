// For one version: <ucx/memory_resources.hpp> has taken this in.
#pragma once

#include "ucx/memory_resources.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/memory_pool.hpp> has become <ucx/memory_resources.hpp>"
#endif
