// Relative paths, as peers may ask a store for them.
#pragma once

#include <string_view>

namespace ucx::detail {

/// Where a writable store keeps what is not whole yet: a directory at its root. No path of a peer's
/// can name one, also not that of a store within a store.
inline constexpr std::string_view spool_name = ".ucxio-unfinished";

/// Returns why `path` is no path within a store; nothing when it is one. A path consists of names
/// between single slashes, none of them "." or "..", and is UTF-8 as every name. Two paths that
/// differ are two files.
std::string_view complaint_about_path(std::string_view path) noexcept;

/// A path in two: the directory ("" for the root), and the last name.
struct split_path {
  std::string_view directory;
  std::string_view name;
};
split_path split(std::string_view path) noexcept;

}  // namespace ucx::detail
