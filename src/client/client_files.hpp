// A client's requests about files: those of the server's stores, and those that it has open.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "ucx/client_options.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/entry.hpp"
#include "ucx/remote_file.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

class client_questions;
class client_regions;
class conversation;
class file_turn;
class remote_region_core;

/// Makes, names, measures, hashes and changes files; see ucx::client. A part of a client; safe from
/// any thread.
class client_files {
 public:
  client_files(client_questions& questions, client_regions& regions) noexcept
      : questions_(questions), regions_(regions) {}
  client_files(const client_files&) = delete;
  client_files& operator=(const client_files&) = delete;

  request start_create(std::string_view name, const create_options& how, remote_region& made,
                       const io_options& options);
  request start_commit(remote_region& file, const commit_options& how, entry& described,
                       const io_options& options);
  request start_measure(remote_region& file, std::uint64_t known, std::chrono::nanoseconds wait,
                        entry& described, const io_options& options);
  request start_digest(remote_region& file, const digest_range& wanted,
                       std::vector<content_digest>& found, const io_options& options);
  request start_resize_file(remote_region& file, std::uint64_t size, const io_options& options) {
    return start_resize_in_turn(file, size, options, nullptr);
  }
  /// The turn ends with the answer, once the server was asked.
  request start_resize_in_turn(remote_region& file, std::uint64_t size, const io_options& options,
                               std::shared_ptr<file_turn> turn);
  request start_make_directory(std::string_view name, const io_options& options);
  request start_remove(std::string_view name, const io_options& options);
  request start_rename(std::string_view from, std::string_view to, const io_options& options);
  request start_resize(std::string_view name, std::uint64_t size, const io_options& options);

  // These wait for the requests of the same names.
  result<remote_region> create(std::string_view name, const create_options& how,
                               const io_options& options);
  result<entry> commit(remote_region& file, const commit_options& how, const io_options& options);
  result<entry> measure(remote_region& file, std::uint64_t known, std::chrono::nanoseconds wait,
                        const io_options& options);
  result<std::vector<content_digest>> digest(remote_region& file, const digest_range& wanted,
                                             const io_options& options);
  result<void> resize_file(remote_region& file, std::uint64_t size, const io_options& options);
  result<void> make_directory(std::string_view name, const io_options& options);
  result<void> remove(std::string_view name, const io_options& options);
  result<void> rename(std::string_view from, std::string_view to, const io_options& options);
  result<void> resize(std::string_view name, std::uint64_t size, const io_options& options);

 private:
  request start_behind_writes(remote_region& file, std::string doing,
                              std::unique_ptr<conversation> what, const io_options& options);
  result<std::shared_ptr<remote_region_core>> usable(const remote_region& file,
                                                     const std::string& doing) const;
  result<std::shared_ptr<remote_region_core>> of_store(const remote_region& file,
                                                       const std::string& doing) const;

  client_questions& questions_;
  client_regions& regions_;
};

}  // namespace ucx::detail
