#pragma once

// For one version.
#include <cstddef>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "ucx/many_files.hpp"
#include "ucx/version.hpp"

#if UCXIO_OLD_NAMES
namespace ucx {

using opened_name [[deprecated("open_result")]] = open_result;
using fetched_name [[deprecated("read_result")]] = read_result;

[[deprecated("open_many")]] inline std::vector<open_result> open_each(
    client& from, std::span<const std::string> names, access wanted = access::read,
    const io_options& options = {}) {
  return open_many(from, names, wanted, options);
}
[[deprecated("read_many")]] inline std::vector<read_result> fetch_each(
    client& from, std::span<const std::string> names, std::size_t max_size,
    const io_options& options = {}) {
  return read_many(from, names, max_size, options);
}
[[deprecated("write_many")]] inline std::vector<std::error_code> store_each(
    client& to, std::span<const short_file> files, creation how = creation::replace,
    const io_options& options = {}) {
  return write_many(to, files, how, options);
}

}  // namespace ucx
#endif  // UCXIO_OLD_NAMES
