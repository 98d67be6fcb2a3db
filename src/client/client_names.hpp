// A client's requests about the names that the server has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "ucx/client_options.hpp"
#include "ucx/entry.hpp"
#include "ucx/request.hpp"
#include "wire/control_message.hpp"

namespace ucx::detail {

class client_questions;

/// Lists names, and describes one, without opening anything. A part of a client; safe from any
/// thread.
class client_names {
 public:
  explicit client_names(client_questions& questions) noexcept : questions_(questions) {}
  client_names(const client_names&) = delete;
  client_names& operator=(const client_names&) = delete;

  request start_list(std::vector<entry>& found, const io_options& options);
  request start_list_directory(std::string_view directory, directory_listing& found,
                               const io_options& options);
  request start_stat(std::string_view name, entry& found, const io_options& options);

  result<std::vector<entry>> list(const io_options& options);
  result<void> visit(const entry_visitor& visitor, const io_options& options);
  result<directory_listing> list_directory(std::string_view directory, const io_options& options);
  result<std::uint64_t> visit_directory(std::string_view directory, const entry_visitor& visitor,
                                        const io_options& options);
  result<entry> stat(std::string_view name, const io_options& options);
  result<bool> exists(std::string_view name, const io_options& options);

 private:
  /// Gives `visit` every entry that `page` asks for, page by page; returns how many names are not
  /// served. Each page has the time-out of `options`.
  result<std::uint64_t> list_pages(list_body page, const entry_visitor& visit,
                                   const io_options& options, const std::string& doing);

  client_questions& questions_;
};

}  // namespace ucx::detail
