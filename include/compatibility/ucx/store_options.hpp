// For one version: <ucx/publication.hpp> has taken this in.
#pragma once

#include "ucx/publication.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/store_options.hpp> has become <ucx/publication.hpp>"
#endif
