// For one version: <ucx/peer_address.hpp> has taken this in.
#pragma once

#include "ucx/peer_address.hpp"
#include "ucx/version.hpp"

#if !UCXIO_OLD_NAMES
#error "<ucx/worker_address.hpp> has become <ucx/peer_address.hpp>"
#endif
