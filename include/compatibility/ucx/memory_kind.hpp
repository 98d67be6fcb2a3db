// For one version: <ucx/memory_place.hpp> has taken this in.
#pragma once

#include "ucx/memory_place.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/memory_kind.hpp> has become <ucx/memory_place.hpp>"
#endif
