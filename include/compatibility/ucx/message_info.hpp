// For one version: <ucx/request.hpp> has taken this in.
#pragma once

#include "ucx/request.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/message_info.hpp> has become <ucx/request.hpp>"
#endif
