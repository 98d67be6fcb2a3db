// Many short files that a client fetches whole.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "ucx/many_files.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

class client_questions;
class client_regions;

/// Fetches what the server has at hand with its answers; opens and reads what it has not. A part of
/// a client; safe from any thread.
class client_fetches {
 public:
  client_fetches(client_questions& questions, client_regions& regions) noexcept
      : questions_(questions), regions_(regions) {}
  client_fetches(const client_fetches&) = delete;
  client_fetches& operator=(const client_fetches&) = delete;

  std::vector<read_result> read_many(std::span<const std::string> names, std::size_t most,
                                     const io_options& options);

 private:
  void fetch_some(std::span<const std::string> names, std::size_t most, const io_options& options,
                  std::span<read_result> all);
  std::vector<std::size_t> fetch_now(const std::vector<std::size_t>& wanted,
                                     std::span<const std::string> names, std::size_t most,
                                     clock::time_point deadline, std::span<read_result> all,
                                     std::vector<std::size_t>& missing);
  void read_each(std::span<const std::size_t> numbers, std::span<const std::string> names,
                 std::size_t most, const io_options& options, std::span<read_result> all);

  client_questions& questions_;
  client_regions& regions_;
};

}  // namespace ucx::detail
