// For one version: <ucx/remote_region.hpp> has taken this in.
#pragma once

#include "ucx/remote_region.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/region_piece.hpp> has become <ucx/remote_region.hpp>"
#endif
