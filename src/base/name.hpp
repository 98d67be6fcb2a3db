// Which names may be published.
#pragma once

#include <cstddef>
#include <string_view>

#include "ucx/url.hpp"

namespace ucx::detail {

/// Bytes of a name at most.
inline constexpr std::size_t longest_name = url::max_name_size;

/// Returns where `text` stops being UTF-8 (RFC 3629, so without surrogates and overlong forms), or
/// its size.
std::size_t valid_utf8(std::string_view text) noexcept;

/// Returns why `name` is no name of a publication; nothing when it is one. A name has 1 to 1024
/// bytes of UTF-8, none of them zero.
std::string_view complaint_about_name(std::string_view name) noexcept;

}  // namespace ucx::detail
