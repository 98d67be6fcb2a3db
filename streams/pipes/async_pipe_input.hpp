// The reads of an end of a pipe, as requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <system_error>

#include "pipes/pipe_input.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/request_source.hpp"

namespace ucx::detail {

struct async_read {
  request_source source = {};
  std::span<std::byte> into = {};
  std::size_t* count = nullptr;
};

/// Fills the memory of reads in their order, as far as bytes are there. In steps.
class async_pipe_input {
 public:
  async_pipe_input(pipe_path& path, const pipe_options& options) : input_(path, options) {}

  /// Ends those of `reads` that can end without waiting, and puts them into `over`.
  void serve(std::list<async_read>& reads, std::list<async_read>& over);
  /// Tells the writers that nothing more is read.
  void close() noexcept {
    input_.close(input_.area().size() - used_);
    used_ = 0;  // it counts as taken
  }
  std::uint64_t received() const noexcept { return input_.taken() + used_; }

 private:
  std::optional<pipe_input::outcome> next_area();
  pipe_input::outcome refill();
  bool has_next();
  std::error_code copy(async_read& to);

  pipe_input input_;
  std::size_t used_ = 0;  // of the area
};

}  // namespace ucx::detail
