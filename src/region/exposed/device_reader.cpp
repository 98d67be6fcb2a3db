#include "region/exposed/device_reader.hpp"

#include <utility>

#include "region/exposed/device_memory.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

class copy_out final : public device_copy {
 public:
  copy_out(worker_core& worker, std::shared_ptr<slow_read> read)
      : read_(std::move(read)), worker_(worker.weak_from_this()) {
    host = read_->into;
    staging = &read_->buffer;
  }

  bool wanted() const noexcept override { return !read_->unwanted.load(std::memory_order_relaxed); }
  void done() noexcept override {
    const std::shared_ptr<worker_core> worker = worker_.lock();
    if (!worker) return;
    read_->error = error == errc::closed ? make_error_code(errc::revoked) : error;
    worker->hand_over(read_);
  }

 private:
  const std::shared_ptr<slow_read> read_;  // and with it the memory
  const std::weak_ptr<worker_core> worker_;
};

}  // namespace

void device_reader::start(std::shared_ptr<slow_read> read) {
  const auto copy = std::make_shared<copy_out>(worker_, read);
  auto& memory = static_cast<device_memory&>(*read->file);
  if (const std::error_code ec = memory.start(copy, read->offset)) {
    copy->error = ec;
    copy->done();
  }
}

}  // namespace ucx::detail
