// For one version: <ucx/request.hpp> has taken this in.
#pragma once

#include "ucx/request.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/wait.hpp> has become <ucx/request.hpp>"
#endif
