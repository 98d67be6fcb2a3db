// The idle operations of a worker, by kind.
#pragma once

#include "detail/flush_operation.hpp"
#include "detail/message_read.hpp"
#include "detail/message_write.hpp"
#include "detail/pool.hpp"
#include "detail/rma_operation.hpp"

namespace ucx::detail {

class operation_pools {
 public:
  pool<message_read> reads;
  pool<message_write> writes;
  pool<rma_operation> rma;
  pool<flush_operation> flushes;
};

}  // namespace ucx::detail
