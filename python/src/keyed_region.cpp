#include "keyed_region.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include <nanobind/stl/string.h>
#include <ucx/request.hpp>

#include "borrowed.hpp"
#include "loop_operation.hpp"
#include "waiting.hpp"
#include "without_gil.hpp"

namespace ucxio_python {
namespace {

namespace nb = nanobind;

/// Returns the first bytes of a buffer.
template <class Byte>
std::span<Byte> first_of(std::span<Byte> buffer, std::size_t size) {
  if (size <= buffer.size()) return buffer.first(size);
  throw nb::value_error(
      ("the buffer has " + std::to_string(buffer.size()) + " bytes, not " + std::to_string(size))
          .c_str());
}

/// Returns how many of `wanted` bytes there are from `offset` on.
std::size_t bytes_left(const ucx::remote_region& region, std::uint64_t offset, std::size_t wanted) {
  if (offset >= region.size()) return 0;
  return static_cast<std::size_t>(std::min<std::uint64_t>(region.size() - offset, wanted));
}

}  // namespace

keyed_region_object::keyed_region_object(std::shared_ptr<plain_connection> over,
                                         const ucx::remote_descriptor& described)
    : over_(std::move(over)) {
  ucx::remote_region_options options;
  options.trusted_peer = true;
  region_ = std::make_shared<ucx::remote_region>(over_->peer(), described, options);
}

keyed_region_object::~keyed_region_object() {
  if (!over_) return;
  const without_gil free;
  region_.reset();
  over_.reset();
}

nb::object keyed_region_object::get(nb::handle buffer, std::uint64_t offset, std::size_t size) {
  refuse_forked_child();
  borrowed lent;
  const std::span<std::byte> into = first_of(lent.take_buffer(buffer, use::write), size);
  ucx::io_options options;
  options.cuda_stream = lent.cuda_stream();
  return begin(
      over_->loop(), lent,
      [of = region_, offset, into, options] {
        return into.empty() ? ucx::request() : of->start_read_at(offset, into, options);
      },
      nothing, nullptr);
}

nb::object keyed_region_object::put(nb::handle buffer, std::uint64_t offset, std::size_t size) {
  refuse_forked_child();
  borrowed lent;
  const std::span<const std::byte> from = first_of(lent.take_buffer(buffer, use::read), size);
  ucx::io_options options;
  options.cuda_stream = lent.cuda_stream();
  return begin(
      over_->loop(), lent,
      [of = region_, offset, from, options] {
        return from.empty() ? ucx::request() : of->start_write_at(offset, from, options);
      },
      nothing, nullptr);
}

std::size_t keyed_region_object::read_into(nb::handle buffer, std::uint64_t offset,
                                           double timeout) {
  ucx::io_options options = within(timeout);
  borrowed lent;
  const std::span<std::byte> all = lent.take_buffer(buffer, use::write);
  const std::span<std::byte> into = all.first(bytes_left(*region_, offset, all.size()));
  options.cuda_stream = lent.cuda_stream();
  if (into.empty()) return 0;
  transfer(lent, [of = region_, offset, into, options] {
    return of->start_read_at(offset, into, options);
  });
  return into.size();
}

std::size_t keyed_region_object::write_from(nb::handle buffer, std::uint64_t offset,
                                            double timeout) {
  using clock = std::chrono::steady_clock;
  ucx::io_options options = within(timeout);
  const clock::time_point begun = clock::now();
  borrowed lent;
  const std::span<const std::byte> all = lent.take_buffer(buffer, use::read);
  const std::span<const std::byte> from = all.first(bytes_left(*region_, offset, all.size()));
  options.cuda_stream = lent.cuda_stream();
  if (from.empty()) return 0;
  transfer(lent, [of = region_, offset, from, options] {
    return of->start_write_at(offset, from, options);
  });
  // Zero would be the default.
  ucx::io_options rest;
  rest.timeout = std::max(options.timeout - (clock::now() - begun), std::chrono::nanoseconds(1));
  ask([of = region_, rest] { return of->start_flush(rest); });
  return from.size();
}

std::string keyed_region_object::transfer_method() const {
  refuse_forked_child();
  const without_gil free;
  return std::string(to_string(region_->transfer_method()));
}

void add_keyed_region(nb::module_& module) {
  using object = keyed_region_object;
  nb::class_<object>(module, "KeyedRegion")
      .def("get", &object::get, nb::arg("buffer").none(), nb::arg("offset"), nb::arg("size"))
      .def("put", &object::put, nb::arg("buffer").none(), nb::arg("offset"), nb::arg("size"))
      .def("read_into", &object::read_into, nb::arg("buffer").none(), nb::arg("offset"),
           nb::arg("timeout"))
      .def("write_from", &object::write_from, nb::arg("buffer").none(), nb::arg("offset"),
           nb::arg("timeout"))
      .def_prop_ro("transfer_method", &object::transfer_method);
}

}  // namespace ucxio_python
