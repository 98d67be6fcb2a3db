#pragma once

// For one version: directory_listing and entry_visitor are in ucx/client.hpp, and listing is done
// by its members.
#include <cstdint>
#include <string_view>
#include <system_error>

#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/request.hpp"
#include "ucx/version.hpp"

#if UCXIO_OLD_NAMES
namespace ucx {

[[deprecated("client::list_directory")]] inline directory_listing read_directory(
    client& from, std::string_view directory, const io_options& options = {},
    std::error_code& ec = throws) {
  return from.list_directory(directory, options, ec);
}
[[deprecated("client::visit")]] inline void visit_names(client& from, const entry_visitor& visit,
                                                        const io_options& options = {},
                                                        std::error_code& ec = throws) {
  from.visit(visit, options, ec);
}
[[deprecated("client::visit_directory")]] inline std::uint64_t visit_directory(
    client& from, std::string_view directory, const entry_visitor& visit,
    const io_options& options = {}, std::error_code& ec = throws) {
  return from.visit_directory(directory, visit, options, ec);
}
[[deprecated("client::list_directory")]] inline directory_listing read_directory(
    client& from, std::string_view directory, std::error_code& ec, const io_options& options = {}) {
  return from.list_directory(directory, options, ec);
}
[[deprecated("client::visit")]] inline void visit_names(client& from, const entry_visitor& visit,
                                                        std::error_code& ec,
                                                        const io_options& options = {}) {
  from.visit(visit, options, ec);
}
[[deprecated("client::visit_directory")]] inline std::uint64_t visit_directory(
    client& from, std::string_view directory, const entry_visitor& visit, std::error_code& ec,
    const io_options& options = {}) {
  return from.visit_directory(directory, visit, options, ec);
}

}  // namespace ucx
#endif
