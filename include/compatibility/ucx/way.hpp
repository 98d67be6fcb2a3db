// For one version: the header that this one was before.
#pragma once

#include "ucx/access.hpp"
