#include "cuda/device_mapping.hpp"

#include <new>
#include <utility>

namespace ucx::detail {
namespace {

/// Lets go of a mapping on the copier's thread: closing one may take as long as what is copied.
class mapping_end final : public device_copy {
 public:
  explicit mapping_end(std::unique_ptr<device_mapping> over) noexcept : over_(std::move(over)) {}
  bool wanted() const noexcept override { return false; }
  void done() noexcept override { over_.reset(); }

 private:
  std::unique_ptr<device_mapping> over_;
};

}  // namespace

device_mapping::device_mapping(std::shared_ptr<const cuda_context> context) noexcept
    : context_(std::move(context)) {}

std::shared_ptr<device_mapping> device_mapping::closed_by(
    const std::shared_ptr<device_copier>& copier, std::unique_ptr<device_mapping> made) {
  return {made.release(), [copier](device_mapping* ended) {
            std::unique_ptr<device_mapping> over(ended);
            try {
              // Where that can not be, it goes here and now.
              copier->start(std::make_shared<mapping_end>(std::move(over)));
            } catch (const std::bad_alloc&) {
            }
          }};
}

std::byte* device_mapping::open() noexcept {
  std::call_once(asked_, [this] {
    begin_ = map();
    if (begin_ == nullptr) refused_.store(true, std::memory_order_release);
  });
  return begin_;
}

}  // namespace ucx::detail
