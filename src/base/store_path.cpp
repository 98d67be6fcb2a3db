#include "base/store_path.hpp"

#include <cstddef>

#include "base/name.hpp"

namespace ucx::detail {
namespace {

constexpr std::size_t longest_component = 255;  // NAME_MAX of every file system of Linux

}  // namespace

std::string_view complaint_about_path(std::string_view path) noexcept {
  const std::string_view complaint = complaint_about_name(path);
  if (!complaint.empty()) return complaint;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t slash = path.find('/', at);
    const std::size_t end = slash == std::string_view::npos ? path.size() : slash;
    const std::string_view each = path.substr(at, end - at);
    if (each.empty()) return "it has an empty part";
    if (each == "." || each == "..") return "it has a part \".\" or \"..\"";
    if (each.size() > longest_component) return "it has a part of more than 255 bytes";
    if (each == spool_name) return "it is where unfinished files are";
    at = end + 1;
  }
  return {};
}

split_path split(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {{}, path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

}  // namespace ucx::detail
