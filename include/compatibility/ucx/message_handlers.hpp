// For one version: <ucx/payload.hpp> has taken this in.
#pragma once

#include "ucx/payload.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/message_handlers.hpp> has become <ucx/payload.hpp>"
#endif
