#include "region/file_region.hpp"

#include <utility>

#include "ucx/error.hpp"
#include "worker/context_core.hpp"

namespace ucx::detail {

file_region::file_region(std::shared_ptr<context_core> context, std::shared_ptr<file_source> file,
                         std::uint64_t size)
    : exposed_region(std::move(context), access::read), file_(std::move(file)), size_(size) {}

std::shared_ptr<file_region> file_region::make(std::shared_ptr<context_core> context,
                                               const std::filesystem::path& path, std::string& what,
                                               std::error_code& ec) {
  std::shared_ptr<open_file> file = open_file::open(path, what, ec);
  if (ec) return nullptr;
  const std::uint64_t size = file->size();
  return make(std::move(context), std::move(file), size, what, ec);
}

std::shared_ptr<file_region> file_region::make(std::shared_ptr<context_core> context,
                                               std::shared_ptr<file_source> file,
                                               std::uint64_t size, std::string& what,
                                               std::error_code& ec) {
  ec.clear();
  if (!context->has(feature::am)) {
    what = "exposing a file: its context was made without feature::am";
    ec = errc::feature_disabled;
    return nullptr;
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
