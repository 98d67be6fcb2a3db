// For one version: <ucx/connection_report.hpp> has taken this in.
#pragma once

#include "ucx/connection_report.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/connection_terms.hpp> has become <ucx/connection_report.hpp>"
#endif
