// Opens a name that a server publishes as the source of a stream.
#pragma once

#include <functional>
#include <ios>
#include <memory>
#include <string_view>

#include "engine/byte_source.hpp"
#include "ucx/client.hpp"
#include "ucx/stream_options.hpp"

namespace ucx::detail {

inline constexpr std::ios_base::openmode directions = std::ios_base::in | std::ios_base::out;

#ifdef __cpp_lib_ios_noreplace
inline constexpr std::ios_base::openmode noreplace = std::ios_base::noreplace;
#elif defined _GLIBCXX_RELEASE && _GLIBCXX_RELEASE >= 12
inline constexpr std::ios_base::openmode noreplace = std::ios_base::__noreplace;
#else
inline constexpr std::ios_base::openmode noreplace = {};
#endif

/// Opens `name` as `mode` says, and again when its connection was lost, where the options say so.
/// `connect` gives a client whose connection is usable, or throws. REQUIRES: `mode` has a meaning.
/// Errors: what `client` documents for opening and creating; not_supported (a mode that wants
/// another size of what has a fixed one).
std::unique_ptr<byte_source> open_published(const std::function<client()>& connect,
                                            std::string_view name, std::ios_base::openmode mode,
                                            const stream_options& options);

}  // namespace ucx::detail
