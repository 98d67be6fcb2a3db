// For one version: <ucx/access.hpp> has taken this in.
#pragma once

#include "ucx/access.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/way.hpp> has become <ucx/access.hpp>"
#endif
