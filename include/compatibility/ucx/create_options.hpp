// For one version: <ucx/remote_file.hpp> has taken this in.
#pragma once

#include "ucx/remote_file.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/create_options.hpp> has become <ucx/remote_file.hpp>"
#endif
