// The idle operations of a worker, by kind, the pieces that they send, and what copies their bytes
// where the processor can not.
#pragma once

#include "detail/batch_read.hpp"
#include "detail/batch_write.hpp"
#include "detail/close_operation.hpp"
#include "detail/device_copiers.hpp"
#include "detail/flush_operation.hpp"
#include "detail/joint_operation.hpp"
#include "detail/message_atomic.hpp"
#include "detail/message_notify.hpp"
#include "detail/message_read.hpp"
#include "detail/message_write.hpp"
#include "detail/notification_wait.hpp"
#include "detail/notify_operation.hpp"
#include "detail/piece_shelf.hpp"
#include "detail/pool.hpp"
#include "detail/receive_operation.hpp"
#include "detail/rma_operation.hpp"
#include "detail/send_operation.hpp"
#include "detail/staging_shelf.hpp"

namespace ucx::detail {

class operation_pools {
 public:
  /// So much memory may be pinned; pieces of answers and of writes have so many bytes at most.
  operation_pools(std::size_t most_pinned, std::size_t answer_piece, std::size_t write_piece)
      : staging(most_pinned, answer_piece, write_piece) {}

  pool<message_read> reads;
  pool<message_write> writes;
  pool<rma_operation> rma;
  pool<flush_operation> flushes;
  pool<message_atomic> atomics;
  pool<message_notify> notes;
  pool<notify_operation> notifies;
  pool<notification_wait> waits;
  // With buffers of their own: few are kept.
  pool<batch_read> batch_reads{32};
  pool<batch_write> batch_writes{32};
  pool<joint_operation> joint;
  pool<close_operation> closes{8};
  pool<receive_operation> receives;
  pool<send_operation> sends;
  staging_shelf staging;
  piece_shelf pieces{staging};
  device_copiers copiers;
};

}  // namespace ucx::detail
