// For one version: <ucx/version.hpp> has taken this in.
#pragma once

#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/export.hpp> has become <ucx/version.hpp>"
#endif
