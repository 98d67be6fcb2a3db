// Sends from, and receives into, one buffer of Python's.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <nanobind/nanobind.h>
#include <ucx/request.hpp>

#include "borrowed.hpp"
#include "foreign_memory.hpp"
#include "loop_operation.hpp"

namespace ucxio_python {

/// Sends the bytes of a buffer, after the work on them that was enqueued on its stream. `start`
/// gets the bytes.
template <class Start>
nanobind::object begin_send(const std::shared_ptr<loop_worker>& loop, nanobind::handle buffer,
                            Start start) {
  refuse_forked_child();
  borrowed lent;
  const std::span<const std::byte> from = lent.take_buffer(buffer, use::read);
  return begin(
      loop, lent,
      [start = std::move(start), from, stream = lent.cuda_stream()] {
        wait_for_stream(from, stream);
        return start(from);
      },
      nothing, nullptr);
}

/// Receives into a writable buffer. `start` gets the memory and the options, `result` the ended
/// request and the size of the buffer.
template <class Start, class Result>
nanobind::object begin_receive(const std::shared_ptr<loop_worker>& loop, nanobind::handle buffer,
                               Start start, Result result) {
  refuse_forked_child();
  borrowed lent;
  const std::span<std::byte> into = lent.take_buffer(buffer, use::write);
  ucx::io_options options;
  options.cuda_stream = lent.cuda_stream();
  return begin(
      loop, lent, [start = std::move(start), into, options] { return start(into, options); },
      [result, size = into.size()](const ucx::request& ended) { return result(ended, size); },
      nullptr);
}

/// Likewise, where nothing is told of what came.
template <class Start>
nanobind::object begin_receive(const std::shared_ptr<loop_worker>& loop, nanobind::handle buffer,
                               Start start) {
  return begin_receive(loop, buffer, std::move(start),
                       [](const ucx::request&, std::size_t) { return nothing(); });
}

/// Makes the lengths of a message that came, and of the memory that it may fill.
inline nanobind::object lengths_of(const ucx::request& ended, std::size_t size) {
  return nanobind::make_tuple(ended.received().length, size);
}

}  // namespace ucxio_python
