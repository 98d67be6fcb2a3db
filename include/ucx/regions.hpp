// Memory and files of other processes, as bytes at offsets.
#pragma once

#include "ucx/access.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_atomic.hpp"
#include "ucx/remote_descriptor.hpp"
#include "ucx/remote_file.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
