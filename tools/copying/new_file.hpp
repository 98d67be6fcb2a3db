// A short file that is written at once.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace ucx::tool {

/// Makes a file of these bytes where there is none. It appears whole or not at all, and nothing is
/// left of it where the process ends before. Returns whether it is there now: file systems without
/// unnamed files can not, and what failed shows to who tries in another way. Nothing that has the
/// name is replaced.
bool write_new_file(const std::filesystem::path& path, std::span<const std::byte> bytes) noexcept;

}  // namespace ucx::tool
