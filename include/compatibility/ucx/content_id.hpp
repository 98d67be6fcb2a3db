// For one version: <ucx/content_digest.hpp> has taken this in.
#pragma once

#include "ucx/content_digest.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/content_id.hpp> has become <ucx/content_digest.hpp>"
#endif
