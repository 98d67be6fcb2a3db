// The bytes of one read or write that the driver moves between this process's memory and its
// owner's: one of the two, or both, are a device's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

#include "cuda/cuda_ipc_mapping.hpp"
#include "cuda/device_copier.hpp"
#include "ucx/memory_place.hpp"

namespace ucx::detail {

class worker_core;

/// Memory that is a device's, or pinned, is one copy's other end. What the driver could not let go
/// of at a deadline, and the program may free, is never that: there the bytes are copied in pieces
/// through staging buffers, some at a time, as the driver does it with such memory itself. Under
/// the worker's lock.
class direct_move {
 public:
  /// Whose bytes they are; outlives it.
  class user {
   public:
    /// All were copied, or a copy failed, and none is under way. May drop the object.
    virtual void moved(std::error_code outcome) = 0;

   protected:
    ~user() = default;
  };

  /// Where the owner's memory begins: a device's, or the host's, which is mapped here.
  struct owners_memory {
    std::shared_ptr<cuda_ipc_mapping> device = {};
    std::byte* host = nullptr;
    std::shared_ptr<const void> keeps = {};  ///< What `host` is mapped by.
  };
  /// `after` comes before what is copied from and to memory of a device here.
  direct_move(worker_core& worker, std::shared_ptr<device_copier> copier, owners_memory there,
              std::shared_ptr<const stream_mark> after);
  direct_move(const direct_move&) = delete;
  direct_move& operator=(const direct_move&) = delete;
  /// What has not begun does not happen any more; nothing comes back to the user.
  ~direct_move();

  /// Copies `bytes` to or from `offset` of the owner's memory. The user hears of the end later,
  /// unless this fails. Errors: no_memory, closed, busy.
  std::error_code start(user& told, std::uint64_t offset, std::span<std::byte> bytes,
                        bool into_owner);

 private:
  static constexpr std::size_t most_begun = 4;
  class piece_copy;

  std::error_code start_more();
  std::error_code start_piece(std::size_t size);
  void ended(piece_copy& piece);

  worker_core& worker_;
  const std::shared_ptr<device_copier> copier_;
  const owners_memory there_;
  const std::shared_ptr<const stream_mark> after_;
  user* user_ = nullptr;
  std::uint64_t offset_ = 0;
  std::span<std::byte> bytes_;
  memory_kind kind_ = memory_kind::host;
  bool into_owner_ = false;
  std::size_t started_ = 0;
  std::error_code failure_;
  std::vector<std::shared_ptr<piece_copy>> running_;
};

}  // namespace ucx::detail
