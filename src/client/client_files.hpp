// A client's requests about files: those of the server's stores, and those that it has open.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/entry.hpp"
#include "ucx/remote_file.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

class client_questions;
class client_regions;
class remote_region_core;

/// Makes, names, measures, hashes and changes files; see ucx::client. A part of a client; safe from
/// any thread.
class client_files {
 public:
  client_files(client_questions& questions, client_regions& regions) noexcept
      : questions_(questions), regions_(regions) {}
  client_files(const client_files&) = delete;
  client_files& operator=(const client_files&) = delete;

  result<remote_region> create(std::string_view name, const create_options& how,
                               const io_options& options);
  result<entry> commit(remote_region& file, bool durable, bool released, const io_options& options);
  result<entry> measure(remote_region& file, std::uint64_t known, std::chrono::nanoseconds wait,
                        const io_options& options);
  result<std::vector<content_digest>> digest(remote_region& file, const digest_range& wanted,
                                             const io_options& options);
  result<void> remove(std::string_view name, const io_options& options);
  result<void> rename(std::string_view from, std::string_view to, const io_options& options);
  result<void> resize(remote_region& file, std::uint64_t size, const io_options& options);
  result<void> resize_by_name(std::string_view name, std::uint64_t size, const io_options& options);

 private:
  result<std::shared_ptr<remote_region_core>> flushed(remote_region& file,
                                                      const io_options& options,
                                                      const std::string& doing);
  failure of_region(failure why, const remote_region_core& asked_about) const;

  client_questions& questions_;
  client_regions& regions_;
};

}  // namespace ucx::detail
