#include "copying/device_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>

#include "copying/local_file.hpp"
#include "output/exit_code.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_resources.hpp"

namespace ucx::tool {
namespace {

constexpr std::size_t piece_size = std::size_t{4} << 20U;

}  // namespace

device_files::device_files(int device) try
    : pool_(std::make_unique<memory_pool>(
          memory_place{memory_kind::cuda, device},
          memory_pool_options{.max_size = std::numeric_limits<std::size_t>::max()})) {
} catch (const error& failed) {
  throw failure(exit_code_of(failed.code()), fmt::format("--gpu-copy: {}", failed.what()));
}

device_files::~device_files() {
  for (const std::span<std::byte>& each : copies_) pool_->deallocate(each.data(), each.size());
}

std::span<std::byte> device_files::add(const std::filesystem::path& path) {
  const local_file source(path, O_RDONLY);
  const struct ::stat status = source.status();
  if (!S_ISREG(status.st_mode)) {
    throw failure(exit_code::usage,
                  fmt::format("cannot copy \"{}\": it is no regular file", path.string()));
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return {};
  std::span<std::byte> copy;
  try {
    copies_.reserve(copies_.size() + 1);
    copy = {static_cast<std::byte*>(pool_->allocate(size)), size};
  } catch (const std::bad_alloc&) {
    throw failure(exit_code_of(make_error_code(errc::no_memory)),
                  fmt::format("cannot copy \"{}\": device {} has no room for {} bytes",
                              path.string(), pool_->place().device, size));
  }
  copies_.push_back(copy);
  std::vector<std::byte> piece(std::min(size, piece_size));
  for (std::size_t done = 0; done < size;) {
    const std::size_t read =
        source.read_at(done, std::span(piece).first(std::min(piece.size(), size - done)));
    if (read == 0) {
      throw failure(exit_code_of(make_error_code(errc::content_changed)),
                    fmt::format("cannot copy \"{}\": it became shorter", path.string()));
    }
    std::error_code ec;
    copy_memory(copy.data() + done, piece.data(), read, {}, ec);
    if (ec) {
      throw failure(exit_code_of(ec),
                    fmt::format("cannot copy \"{}\" to device {}: {}", path.string(),
                                pool_->place().device, ec.message()));
    }
    done += read;
  }
  return copy;
}

}  // namespace ucx::tool
