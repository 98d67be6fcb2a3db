// For one version: <ucx/memory_region.hpp> has taken this in.
#pragma once

#include "ucx/memory_region.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/notification.hpp> has become <ucx/memory_region.hpp>"
#endif
