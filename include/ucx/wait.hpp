// For programs that included this when waits had a header of their own.
#pragma once

#include "ucx/request.hpp"
