#pragma once

#include <cstdint>
#include <string_view>

#include "ucx/export.hpp"
#include "ucx/to_string.hpp"

namespace ucx {

/// The beginning of a store's file that is opened to be written.
enum class creation : std::uint8_t {
  replace = 1,    ///< A new file. It replaces the present one when it is committed.
  exclusive = 2,  ///< A new file. The name must be free.
  append = 3,     ///< The present file, in place. A missing one is made at once.
  overwrite = 4,  ///< Like `replace`; but a name that was published by itself is opened as it is.
#if UCXIO_OLD_NAMES
  fresh [[deprecated("exclusive")]] = exclusive,
#endif
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(creation value) noexcept;

/// The options of `client::create`.
struct create_options {
  creation mode = creation::replace;
  bool readable = false;  ///< The written bytes can be read back.
};

}  // namespace ucx
