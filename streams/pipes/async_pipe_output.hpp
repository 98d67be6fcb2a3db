// The writes of an end of a pipe, its flushes and its end, as requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>

#include "pipes/pipe_output.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/request_source.hpp"

namespace ucx::detail {

enum class async_output_kind { write, flush, close_output, close };

struct async_output {
  request_source source = {};
  async_output_kind what = async_output_kind::write;
  std::span<const std::byte> from = {};
  std::size_t done = 0;  // bytes that were taken over
};

/// Puts the bytes of writes into messages in their order, as far as there is room. In steps.
class async_pipe_output {
 public:
  async_pipe_output(pipe_path& path, const pipe_options& options)
      : name_(path.name), output_(path, options) {}

  pipe_output& output() noexcept { return output_; }
  const pipe_output& output() const noexcept { return output_; }

  /// Does the first of `all` that is not done, where it can be without waiting. Returns whether it
  /// has ended: the connections of one that closes them are left to the caller.
  bool serve(async_output& next);
  /// How closing ended; and in words.
  std::error_code result() const noexcept { return result_; }
  const std::string& result_text() const noexcept { return result_text_; }
  void abort() noexcept { output_.abort(make_error_code(errc::canceled)); }

 private:
  std::uint64_t written() const noexcept { return output_.sent() + used_; }
  std::size_t room() const noexcept { return output_.area().size() - used_; }
  bool flush_area();
  bool ends(async_output& failed);
  bool write(async_output& next);
  bool flush(async_output& next);
  bool close(async_output& next);
  void miss(const async_output& cut) noexcept;
  void give_up(std::error_code why, std::string text);

  const std::string name_;
  pipe_output output_;
  std::size_t used_ = 0;         // of the area
  std::uint64_t due_ = 0;        // offered by the program, where writes were cut short
  std::error_code write_error_;  // of the last write that failed
  std::string write_text_;
  std::error_code result_;
  std::string result_text_;
};

}  // namespace ucx::detail
