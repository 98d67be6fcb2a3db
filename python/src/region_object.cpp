#include "region_object.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <ucx/content_digest.hpp>
#include <ucx/error.hpp>
#include <ucx/remote_atomic.hpp>

#include "borrowed.hpp"
#include "enumerators.hpp"
#include "errors.hpp"
#include "loop_operation.hpp"
#include "loop_worker.hpp"
#include "waiting.hpp"
#include "without_gil.hpp"

namespace ucxio_python {
namespace {

namespace nb = nanobind;

/// Returns how many of `wanted` bytes there are between `offset` and `end`.
std::size_t available(std::uint64_t offset, std::uint64_t end, std::size_t wanted) {
  if (offset >= end) return 0;
  return static_cast<std::size_t>(std::min<std::uint64_t>(end - offset, wanted));
}

/// Closes a region, and has the server told so: between calls nobody drives a client without a
/// loop.
void let_go(ucx::client& through, ucx::remote_region& region, loop_worker* loop) noexcept {
  constexpr int rounds = 4;
  region.close();
  region = {};
  if (loop != nullptr) return loop->wake();
  try {
    for (int i = 0; i < rounds && !through.status(); ++i) through.worker().progress();
  } catch (const std::exception&) {  // then the server learns it later
  }
}

std::pair<std::uint64_t, nb::object> piece_of(nb::handle piece) {
  const nb::tuple pair(piece);
  if (nb::len(pair) != 2) throw nb::value_error("a piece is a pair of an offset and a buffer");
  return {nb::cast<std::uint64_t>(pair[0]), pair[1]};
}

nb::object number(std::uint64_t value) { return nb::int_(value); }

/// Returns what a question about a region refers to until its end.
template <class Found>
std::shared_ptr<void> target_of(const std::shared_ptr<ucx::remote_region>& region, Found found) {
  return std::make_shared<std::pair<std::shared_ptr<ucx::remote_region>, Found>>(region,
                                                                                 std::move(found));
}

}  // namespace

region_object::region_object(std::shared_ptr<ucx::client> through, ucx::remote_region region,
                             std::shared_ptr<loop_worker> loop)
    : state_(std::make_shared<state>()) {
  state_->loop = std::move(loop);
  state_->through = std::move(through);
  state_->region = std::make_shared<ucx::remote_region>(std::move(region));
}

region_object::~region_object() {
  if (!state_) return;
  const without_gil free;
  // Views of its memory keep the region.
  if (state_.use_count() == 1 && state_->region.use_count() == 1 && !ucx::is_forked_child()) {
    let_go(*state_->through, *state_->region, state_->loop.get());
  }
  state_.reset();
}

std::shared_ptr<region_object::state> region_object::open() const {
  refuse_forked_child();
  if (!state_) throw ucx::error(ucx::errc::closed, "the region was closed");
  return state_;
}

/// Returns the start of an operation that no other thread starts at the same time.
template <class Start>
auto region_object::alone(Start start) const {
  return [kept = open(), start = std::move(start)] {
    const std::lock_guard guard(kept->one_at_a_time);
    return start(*kept);
  };
}

std::uint64_t region_object::size() const { return open()->region->size(); }
std::uint64_t region_object::max_size() const { return open()->region->max_size(); }
std::string region_object::granted() const {
  return std::string(to_string(open()->region->granted()));
}
std::string region_object::kind() const { return std::string(to_string(open()->region->kind())); }
std::uint64_t region_object::content() const {
  const std::shared_ptr<state> of = open();
  const without_gil free;
  return of->region->content().generation;
}
bool region_object::is_open() const { return state_ != nullptr; }

std::string region_object::transfer_method() const {
  const std::shared_ptr<state> of = open();
  const without_gil free;
  return std::string(to_string(of->region->transfer_method()));
}

std::string region_object::why_not(const std::string& wanted) const {
  const std::shared_ptr<state> of = open();
  const auto method = value_of<ucx::transfer_method>(wanted, "transfer method");
  const without_gil free;
  return of->region->why_not(method);
}

std::string region_object::description() const {
  const std::shared_ptr<state> of = open();
  const without_gil free;
  return of->region->description();
}

nb::object region_object::read_into(nb::handle buffer, std::uint64_t offset, bool up_to_end,
                                    std::optional<double> timeout, bool verify) {
  ucx::io_options options = within(timeout, verify);
  const std::shared_ptr<state> of = open();
  borrowed lent;
  std::span<std::byte> into = lent.take_buffer(buffer, use::write);
  options.cuda_stream = lent.cuda_stream();
  if (up_to_end) into = into.first(available(offset, of->region->size(), into.size()));
  const bool is_nothing = into.empty() && (up_to_end || offset <= of->region->size());
  return finish_transfer(of->loop, lent, alone([=](state& through) {
                           return is_nothing ? ucx::request()
                                             : through.region->start_read_at(offset, into, options);
                         }),
                         [count = into.size()] { return number(count); });
}

nb::object region_object::read(std::uint64_t offset, std::uint64_t length,
                               std::optional<double> timeout, bool verify) {
  const ucx::io_options options = within(timeout, verify);
  const std::shared_ptr<state> of = open();
  const std::uint64_t size = of->region->size();
  if (offset > size || length > size - offset) {
    throw ucx::error(ucx::errc::out_of_range, "reading " + std::to_string(length) + " bytes at " +
                                                  std::to_string(offset) + " of " +
                                                  std::to_string(size));
  }
  const nb::object made =
      nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(length)));
  if (!made.is_valid()) throw nb::python_error();
  // Nobody else knows the object yet.
  const std::span into(reinterpret_cast<std::byte*>(PyBytes_AsString(made.ptr())),
                       static_cast<std::size_t>(length));
  borrowed lent;
  lent.take(made);
  return finish_transfer(
      of->loop, lent, alone([=](state& through) {
        return into.empty() ? ucx::request() : through.region->start_read_at(offset, into, options);
      }),
      // What was lent has the reference.
      [bytes = made.ptr()] { return nb::borrow(bytes); });
}

nb::object region_object::write_from(nb::handle buffer, std::uint64_t offset, bool up_to_end,
                                     std::optional<double> timeout) {
  ucx::io_options options = within(timeout);
  const std::shared_ptr<state> of = open();
  borrowed lent;
  std::span<const std::byte> from = lent.take_buffer(buffer, use::read);
  options.cuda_stream = lent.cuda_stream();
  if (up_to_end && !from.empty()) {
    const std::size_t room = available(offset, of->region->max_size(), from.size());
    if (room == 0) {
      throw ucx::error(ucx::errc::no_space, "writing at " + std::to_string(offset) +
                                                ": that is the end, of a fixed size");
    }
    from = from.first(room);
  }
  return finish_transfer(of->loop, lent, alone([=](state& through) {
                           return from.empty()
                                      ? ucx::request()
                                      : through.region->start_write_at(offset, from, options);
                         }),
                         [count = from.size()] { return number(count); });
}

nb::object region_object::read_batch(nb::handle pieces, std::optional<double> timeout,
                                     bool verify) {
  ucx::io_options options = within(timeout, verify);
  borrowed lent;
  std::vector<ucx::read_piece> all;
  for (nb::handle each : nb::iter(pieces)) {
    const auto [offset, buffer] = piece_of(each);
    all.push_back({.offset = offset, .into = lent.take_buffer(buffer, use::write)});
  }
  options.cuda_stream = lent.cuda_stream();
  return finish_transfer(open()->loop, lent, alone([all = std::move(all), options](state& through) {
                           return through.region->start_read_batch(all, options);
                         }),
                         nothing);
}

nb::list region_object::read_across(nb::handle parts, std::optional<double> timeout, bool verify) {
  ucx::io_options options = within(timeout, verify);
  struct part {
    std::shared_ptr<state> of;
    std::vector<ucx::read_piece> pieces;
  };
  borrowed lent;
  std::vector<part> all;
  for (nb::handle each : nb::iter(parts)) {
    const nb::tuple pair(each);
    if (nb::len(pair) != 2) throw nb::value_error("a part is a pair of a region and its pieces");
    all.push_back({nb::cast<const region_object&>(pair[0]).open(), {}});
    for (nb::handle piece : nb::iter(pair[1])) {
      const auto [offset, buffer] = piece_of(piece);
      all.back().pieces.push_back({.offset = offset, .into = lent.take_buffer(buffer, use::write)});
    }
  }
  options.cuda_stream = lent.cuda_stream();
  std::vector<ucx::request> going;
  transfer_all(lent, going, [&] {
    for (part& each : all) {
      const std::lock_guard guard(each.of->one_at_a_time);
      going.push_back(each.of->region->start_read_batch(each.pieces, options));
    }
  });
  nb::list outcomes;
  for (ucx::request& each : going) {
    try {
      each.wait();
      outcomes.append(nb::none());
    } catch (const ucx::error& failed) {
      outcomes.append(error_of(failed.code(), failed.what()));
    }
  }
  return outcomes;
}

nb::object region_object::write_batch(nb::handle pieces, std::optional<double> timeout) {
  ucx::io_options options = within(timeout);
  borrowed lent;
  std::vector<ucx::write_piece> all;
  for (nb::handle each : nb::iter(pieces)) {
    const auto [offset, buffer] = piece_of(each);
    all.push_back({.offset = offset, .from = lent.take_buffer(buffer, use::read)});
  }
  options.cuda_stream = lent.cuda_stream();
  return finish_transfer(open()->loop, lent, alone([all = std::move(all), options](state& through) {
                           return through.region->start_write_batch(all, options);
                         }),
                         nothing);
}

nb::object region_object::atomic(const std::string& operation, std::uint64_t offset,
                                 std::size_t width, std::uint64_t operand, std::uint64_t expected,
                                 bool fetches, std::optional<double> timeout) {
  const ucx::io_options options = within(timeout);
  const ucx::atomic_access wanted{
      .operation = value_of<ucx::atomic_operation>(operation, "operation"),
      .width = width,
      .operand = operand,
      .expected = expected};
  borrowed lent;
  auto& before = lent.make<std::array<std::byte, 8>>();
  const std::size_t filled = fetches ? std::min<std::size_t>(width, before.size()) : 0;
  const std::span<std::byte> previous(before.data(), filled);
  return finish_transfer(
      open()->loop, lent, alone([=](state& through) {
        return through.region->start_atomic(offset, wanted, previous, options);
      }),
      [&before, width] {
        std::uint64_t value = 0;
        if (width != 4) {
          std::copy_n(before.data(), sizeof value, reinterpret_cast<std::byte*>(&value));
          return number(value);
        }
        std::uint32_t narrow = 0;
        std::copy_n(before.data(), sizeof narrow, reinterpret_cast<std::byte*>(&narrow));
        return number(narrow);
      });
}

nb::object region_object::flush(std::optional<double> timeout) {
  const ucx::io_options options = within(timeout);
  return finish_question(
      open()->loop, alone([=](state& through) { return through.region->start_flush(options); }),
      nothing);
}

nb::object region_object::notify(std::uint64_t value, std::optional<double> timeout) {
  const ucx::io_options options = within(timeout);
  return finish_question(
      open()->loop,
      alone([=](state& through) { return through.region->start_notify(value, options); }), nothing);
}

nb::object region_object::view(std::uint64_t offset, std::optional<std::uint64_t> length,
                               bool writable) {
  const std::shared_ptr<state> of = open();
  const std::uint64_t size = of->region->size();
  const std::uint64_t rest = offset > size ? 0 : size - offset;
  const auto wanted = static_cast<std::size_t>(length.value_or(rest));
  std::span<std::byte> bytes;
  {
    const without_gil free;
    const std::lock_guard guard(of->one_at_a_time);
    if (writable) {
      bytes = of->region->writable_view(offset, wanted);
    } else {
      const std::span<const std::byte> seen = of->region->view(offset, wanted);
      // It goes out as a read-only buffer.
      bytes = {const_cast<std::byte*>(seen.data()), seen.size()};
    }
  }
  return make_memoryview(bytes, writable, of, of->lent);
}

nb::object region_object::commit(bool durable, bool close, std::optional<double> timeout) {
  const ucx::io_options options = within(timeout);
  const auto found = std::make_shared<ucx::entry>();
  return finish_question(open()->loop, alone([=](state& of) {
                           const ucx::commit_options how{.durable = durable, .close = close};
                           return of.through->start_commit(*of.region, how, *found, options);
                         }),
                         nothing, target_of(open()->region, found));
}

nb::object region_object::resize(std::uint64_t size, std::optional<double> timeout) {
  const ucx::io_options options = within(timeout);
  return finish_question(open()->loop, alone([=](state& of) {
                           return of.through->start_resize(*of.region, size, options);
                         }),
                         nothing, open()->region);
}

nb::object region_object::refresh(std::uint64_t known, double wait, std::optional<double> timeout) {
  const ucx::io_options options = within(timeout);
  const auto limit = wait > 0 ? duration_of(wait) : std::chrono::nanoseconds::zero();
  const auto found = std::make_shared<ucx::entry>();
  return finish_question(
      open()->loop, alone([=](state& of) {
        return of.through->start_refresh_size(*of.region, known, limit, *found, options);
      }),
      [found] { return number(found->size); }, target_of(open()->region, found));
}

nb::object region_object::digest(std::uint64_t offset, std::uint64_t length, std::uint64_t chunk,
                                 std::optional<double> timeout) {
  const ucx::io_options options = within(timeout);
  const ucx::digest_range wanted{.offset = offset, .length = length, .chunk = chunk};
  const auto found = std::make_shared<std::vector<ucx::content_digest>>();
  return finish_question(
      open()->loop, alone([=](state& of) {
        return of.through->start_digest(*of.region, wanted, *found, options);
      }),
      [found] {
        nb::list texts;
        for (const auto& each : *found) texts.append(to_string(each));
        return nb::object(texts);
      },
      target_of(open()->region, found));
}

void region_object::close() {
  if (!state_) return;
  state_->lent.refuse_if_lent("closing a region");
  std::shared_ptr<state> gone = std::exchange(state_, nullptr);
  const without_gil free;
  // A child of fork() leaves the parent's alone.
  if (ucx::is_forked_child()) return;
  {
    const std::lock_guard guard(gone->one_at_a_time);
    if (gone.use_count() == 1 && gone->region.use_count() == 1) {
      let_go(*gone->through, *gone->region, gone->loop.get());
    } else {
      // A call on another thread has it, and may make a view: the mapping stays until it goes.
      gone->region->close();
      if (gone->loop) gone->loop->wake();
    }
  }
  gone.reset();
}

/// Adds what all regions have.
template <class Object>
nb::class_<Object> add_region_as(nb::module_& module, const char* name) {
  using object = Object;
  nb::class_<Object> made(module, name);
  made.def_prop_ro("size", &object::size)
      .def_prop_ro("max_size", &object::max_size)
      .def_prop_ro("access", &object::granted)
      .def_prop_ro("kind", &object::kind)
      .def_prop_ro("transfer_method", &object::transfer_method)
      .def_prop_ro("description", &object::description)
      .def_prop_ro("generation", &object::content)
      .def_prop_ro("is_open", &object::is_open)
      .def("why_not", &object::why_not)
      .def("read_into", &object::read_into, nb::arg("buffer").none(), nb::arg("offset"),
           nb::arg("up_to_end"), nb::arg("timeout").none(), nb::arg("verify"))
      .def("read", &object::read, nb::arg("offset"), nb::arg("length"), nb::arg("timeout").none(),
           nb::arg("verify"))
      .def("write_from", &object::write_from, nb::arg("buffer").none(), nb::arg("offset"),
           nb::arg("up_to_end"), nb::arg("timeout").none())
      .def("read_batch", &object::read_batch, nb::arg("pieces").none(), nb::arg("timeout").none(),
           nb::arg("verify"))
      .def("write_batch", &object::write_batch, nb::arg("pieces").none(), nb::arg("timeout").none())
      .def("atomic", &object::atomic, nb::arg("operation"), nb::arg("offset"), nb::arg("width"),
           nb::arg("operand"), nb::arg("expected"), nb::arg("fetches"), nb::arg("timeout").none())
      .def("flush", &object::flush, nb::arg("timeout").none())
      .def("notify", &object::notify, nb::arg("value"), nb::arg("timeout").none())
      .def("view", &object::view, nb::arg("offset"), nb::arg("length").none(), nb::arg("writable"))
      .def("commit", &object::commit, nb::arg("durable"), nb::arg("close"),
           nb::arg("timeout").none())
      .def("resize", &object::resize, nb::arg("size"), nb::arg("timeout").none())
      .def("refresh", &object::refresh, nb::arg("known"), nb::arg("wait"),
           nb::arg("timeout").none())
      .def("digest", &object::digest, nb::arg("offset"), nb::arg("length"), nb::arg("chunk"),
           nb::arg("timeout").none())
      .def("close", &object::close);
  return made;
}

void add_region(nb::module_& module) {
  add_region_as<region_object>(module, "Region")
      .def_static("read_across", &region_object::read_across, nb::arg("parts"),
                  nb::arg("timeout").none(), nb::arg("verify"));
  add_region_as<loop_region_object>(module, "LoopRegion");
}

}  // namespace ucxio_python
