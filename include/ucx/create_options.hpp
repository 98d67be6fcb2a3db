#pragma once

#include <cstdint>
#include <string_view>

#include "ucx/enumeration_text.hpp"
#include "ucx/export.hpp"

namespace ucx {

/// What a file of a store is made of, that is opened to be written.
enum class creation : std::uint8_t {
  replace = 1,    ///< A new file, which replaces what is there when it is committed.
  fresh = 2,      ///< A new file; nothing of that name may be there.
  append = 3,     ///< What is there, where it is; made at once where it is not.
  overwrite = 4,  ///< As `replace`; but what was published by name is opened as it is.
};

/// Returns the name of the enumerator.
UCXIO_EXPORT std::string_view to_string(creation value) noexcept;

/// How `client::create` opens a file.
struct create_options {
  creation mode = creation::replace;
  bool readable = false;  ///< What was written can be read back.
};

}  // namespace ucx
