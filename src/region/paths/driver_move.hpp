// A move by the CUDA driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

#include "cuda/device_copier.hpp"
#include "cuda/device_mapping.hpp"
#include "region/paths/direct_move.hpp"
#include "ucx/memory_place.hpp"

namespace ucx::detail {

class worker_core;

/// Memory of a device, and pinned memory, is copied directly. Other memory is copied in pieces
/// through staging buffers, several at a time, as the driver itself copies such memory. Otherwise
/// the driver might still use the memory behind a deadline, when the program may free it.
class driver_move final : public direct_move {
 public:
  /// Where the owner's memory begins: a device's, or the host's, which is mapped here.
  struct owners_memory {
    std::shared_ptr<device_mapping> device = {};
    std::byte* host = nullptr;
    std::shared_ptr<const void> keeps = {};  ///< Keeps `host` mapped.
  };
  /// `after` comes before what is copied from and to memory of a device here.
  driver_move(worker_core& worker, std::shared_ptr<device_copier> copier, owners_memory there,
              std::shared_ptr<const stream_mark> after);
  ~driver_move() override;

  std::error_code start(user& told, std::uint64_t offset, std::span<std::byte> bytes,
                        bool into_owner) override;

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
