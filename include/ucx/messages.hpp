// Messages between processes: tagged, active, and of several parts.
#pragma once

#include "ucx/buffer.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/message.hpp"
#include "ucx/payload.hpp"
#include "ucx/receive_target.hpp"
#include "ucx/request.hpp"
#include "ucx/worker.hpp"
