// For one version: <ucx/listener.hpp> has taken this in.
#pragma once

#include "ucx/listener.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/connection_request.hpp> has become <ucx/listener.hpp>"
#endif
