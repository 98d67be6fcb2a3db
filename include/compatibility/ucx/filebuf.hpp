// For one version: <ucx/fstream.hpp> has taken this in.
#pragma once

#include "ucx/fstream.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/filebuf.hpp> has become <ucx/fstream.hpp>"
#endif
