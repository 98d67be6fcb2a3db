#include "region/exposed/file_region.hpp"

#include <utility>

#include "ucx/error.hpp"
#include "worker/context_core.hpp"

namespace ucx::detail {

file_region::file_region(std::shared_ptr<context_core> context, std::shared_ptr<file_source> file,
                         std::uint64_t size)
    : exposed_region(std::move(context), access::read), file_(std::move(file)), size_(size) {}

result<std::shared_ptr<file_region>> file_region::make(std::shared_ptr<context_core> context,
                                                       const std::filesystem::path& path) {
  const auto file = open_file::open(path);
  if (!file) return file.why();
  return make(std::move(context), *file, (*file)->size());
}

result<std::shared_ptr<file_region>> file_region::make(std::shared_ptr<context_core> context,
                                                       std::shared_ptr<file_source> file,
                                                       std::uint64_t size) {
  if (!context->has(feature::am)) {
    return failure{errc::feature_disabled,
                   "exposing a file: its context was made without feature::am"};
  }
  std::shared_ptr<file_region> made(new file_region(std::move(context), std::move(file), size));
  made->expose();
  return made;
}

file_region::~file_region() { close(); }

void file_region::reach(std::uint64_t size) noexcept {
  std::uint64_t known = size_.load(std::memory_order_relaxed);
  // Never less: who reads what was cut off is told that it was.
  while (known < size && !size_.compare_exchange_weak(known, size, std::memory_order_relaxed)) {
  }
}

void file_region::release() noexcept { file_.reset(); }

}  // namespace ucx::detail
