// For one version: <ucx/context.hpp> has taken this in.
#pragma once

#include "ucx/context.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/log.hpp> has become <ucx/context.hpp>"
#endif
