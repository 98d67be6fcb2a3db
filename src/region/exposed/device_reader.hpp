// Reads memory of devices for peers, each by its own copier.
#pragma once

#include <memory>

#include "file/slow_reader.hpp"

namespace ucx::detail {

class worker_core;

/// start() does not block, and there is nothing to stop: a read belongs to its memory's copier
/// until the driver lets go of it. The read then comes back to the worker, if the worker still
/// exists.
class device_reader final : public slow_reader {
 public:
  explicit device_reader(worker_core& worker) noexcept : worker_(worker) {}
  /// REQUIRES: what is read is a device_memory.
  void start(std::shared_ptr<slow_read> read) override;

 private:
  worker_core& worker_;
};

}  // namespace ucx::detail
