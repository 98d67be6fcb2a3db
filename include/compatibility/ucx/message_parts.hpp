// For one version: <ucx/receive_target.hpp> has taken this in.
#pragma once

#include "ucx/receive_target.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/message_parts.hpp> has become <ucx/receive_target.hpp>"
#endif
