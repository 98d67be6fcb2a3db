// Many short files that a client stores whole.
#pragma once

#include <cstddef>
#include <span>
#include <system_error>
#include <vector>

#include "base/clock.hpp"
#include "client/client_questions.hpp"
#include "ucx/many_files.hpp"
#include "ucx/remote_file.hpp"
#include "ucx/request.hpp"
#include "wire/control_message.hpp"

namespace ucx::detail {

class client_files;

/// Puts as many files into a message as fit it, and creates each other one by itself. Counts the
/// room at the server that all threads take. A part of a client; safe from any thread.
class client_puts {
 public:
  client_puts(client_questions& questions, client_files& files) noexcept
      : questions_(questions), files_(files) {}
  client_puts(const client_puts&) = delete;
  client_puts& operator=(const client_puts&) = delete;

  std::vector<std::error_code> write_many(std::span<const short_file> files, creation how,
                                          const io_options& options);

 private:
  class taken_room;

  bool can_be_put(const short_file& file) const;
  std::error_code put_some(std::span<const short_file> files, creation how,
                           const io_options& options, std::vector<std::error_code>& all);
  std::vector<client_questions::question> ask_to_put(const std::vector<put_body>& bodies,
                                                     clock::time_point deadline);
  void count_failures(std::span<const std::error_code> outcomes) noexcept;
  std::error_code store_alone(const short_file& file, creation how, const io_options& options);

  client_questions& questions_;
  client_files& files_;
  // Under the worker's lock: what is on its way, by any thread.
  std::size_t bytes_on_their_way_ = 0;
  std::size_t files_on_their_way_ = 0;
};

}  // namespace ucx::detail
