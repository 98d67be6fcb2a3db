// Messages between processes: tagged, active, and of several parts.
#pragma once

#include "ucx/buffer.hpp"
#include "ucx/buffer_pool.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/message.hpp"
#include "ucx/message_handlers.hpp"
#include "ucx/message_info.hpp"
#include "ucx/message_parts.hpp"
#include "ucx/payload.hpp"
#include "ucx/receive_target.hpp"
#include "ucx/request.hpp"
#include "ucx/send_options.hpp"
#include "ucx/tag_match.hpp"
#include "ucx/worker.hpp"
