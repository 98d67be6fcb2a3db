#include "pipe_object.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ios>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <ucx/client.hpp>
#include <ucx/context.hpp>
#include <ucx/error.hpp>

#include "borrowed.hpp"
#include "enumerators.hpp"
#include "loop_operation.hpp"
#include "loop_worker.hpp"
#include "waiting.hpp"
#include "without_gil.hpp"

namespace ucxio_python {
namespace {

namespace nb = nanobind;
using namespace std::chrono_literals;

/// The options of a worker are those of a stream's (`pipe_options`).
constexpr std::size_t least_window = std::size_t{1} << 20U;
constexpr std::chrono::nanoseconds most_for_the_server = 5s;
constexpr std::chrono::nanoseconds least_for_the_server = 1s;

std::ios_base::openmode mode_of(const std::string& mode) {
  if (mode == "read") return std::ios_base::in;
  if (mode == "write") return std::ios_base::out;
  if (mode == "both") return std::ios_base::in | std::ios_base::out;
  throw nb::value_error(("\"" + mode + "\" is no mode of a pipe").c_str());
}

/// Sets a duration, unless there is none.
void set(std::chrono::nanoseconds& duration, std::optional<double> seconds) {
  if (seconds) duration = duration_of(seconds);
}

ucx::worker_options worker_options_for(const ucx::pipe_options& options, bool in_loop) {
  const std::size_t peers = std::max(options.writers, options.readers);
  const std::size_t window = std::min(options.window, std::size_t{ucx::pipe_options::max_window});
  ucx::worker_options chosen;
  chosen.progress = in_loop ? ucx::progress_mode::external : ucx::progress_mode::sleeping_thread;
  // Garbage is collected on any thread.
  chosen.thread_mode = ucx::thread_mode::multi;
  chosen.heartbeat_timeout = options.heartbeat_timeout;
  chosen.heartbeat_interval = std::min<std::chrono::nanoseconds>(1s, options.heartbeat_timeout / 4);
  chosen.close_timeout = 2s;
  chosen.connect_timeout =
      std::clamp(options.connect_timeout, least_for_the_server, most_for_the_server);
  chosen.message_window = std::max(2 * window, least_window);
  chosen.untaken_messages =
      std::max(chosen.untaken_messages,
               4 * (std::min(peers, ucx::pipe_options::max_peers) + 1) * chosen.message_window);
  return chosen;
}

/// Sets the transports for a URL, and returns the URL by which they reach its server. By TLS the
/// server may have a Unix socket for this user: all ends of a pipe go by it, or none.
ucx::url way_to(const ucx::url& where, ucx::context_options& context,
                std::chrono::nanoseconds limit) {
  if (!where.is_tls()) {
    if (where.is_socket()) context.transports = {"socket"};
    return where;
  }
  if (context.transports.empty()) {
    ucx::client_options options;
    options.context = context;
    options.worker.connect_timeout = limit;
    const ucx::client probe(where.server(), options);
    const ucx::socket_address peer = probe.connection().peer();
    if (peer.is_unix()) {
      context.transports = {"socket"};
      return ucx::url::over_unix(peer.host(), where.name());
    }
  }
  context.transports = {"tls"};
  return where;
}

/// All pipes that were made.
struct all_pipes {
  std::mutex lock;
  std::vector<std::weak_ptr<pipe_object::state>> made;
};

// Never destroyed: the interpreter may end after the static objects.
all_pipes& pipes() {
  static auto* const all = new all_pipes();
  return *all;
}

std::shared_ptr<pipe_object::state> note(pipe_worker by, ucx::async_pipe&& made) {
  auto noted = std::make_shared<pipe_object::state>(std::move(by), std::move(made));
  const std::lock_guard guard(pipes().lock);
  std::erase_if(pipes().made, [](const auto& each) { return each.expired(); });
  pipes().made.push_back(noted);
  return noted;
}

/// Lets go of a pipe that another thread dropped meanwhile: its worker's end waits for threads.
struct dropped_at_end {
  std::shared_ptr<pipe_object::state> of;

  ~dropped_at_end() {
    if (of.use_count() > 1) return;
    const without_gil free;
    of.reset();
  }
};

/// Refuses to go on behind bytes that nobody got.
/// REQUIRES: a later read has ended.
void refuse_gap(pipe_object::state& of) {
  std::size_t lost = 0;
  for (const auto& each : of.interrupted) lost += *each;
  if (lost > 0) {
    throw ucx::error(ucx::errc::canceled, "an interrupted read had read " + std::to_string(lost) +
                                              " bytes, which are lost: reading does not go on");
  }
  of.interrupted.clear();
}

}  // namespace

ucx::worker& pipe_worker::get() const noexcept { return loop ? loop->worker() : *own; }

pipe_object::~pipe_object() {
  if (!state_) return;
  const without_gil free;
  state_.reset();
}

std::shared_ptr<pipe_object::state> pipe_object::open() const {
  refuse_forked_child();
  if (!state_) throw ucx::error(ucx::errc::closed, "the pipe was closed");
  return state_;
}

nb::object pipe_object::read_into(nb::handle buffer) {
  const dropped_at_end held{open()};
  const std::shared_ptr<state>& of = held.of;
  borrowed lent;
  const std::span<std::byte> into = lent.take_buffer(buffer, use::write);
  // An interrupted read leaves them to the request.
  const auto count = std::make_shared<std::size_t>(0);
  lent.keep(count);
  lent.make<pipe_worker>() = of->by.loop ? pipe_worker() : of->by;
  try {
    return finish_transfer(
        of->by.loop, lent, [of, into, count] { return of->pipe.start_read(into, *count); },
        [of, count] {
          refuse_gap(*of);
          return nb::object(nb::int_(*count));
        });
  } catch (const nb::python_error&) {
    // It may end well nevertheless. The next read, which ends later, is to tell that.
    of->interrupted.push_back(count);
    throw;
  }
}

nb::object pipe_object::write_from(nb::handle buffer) {
  const dropped_at_end held{open()};
  const std::shared_ptr<state>& of = held.of;
  borrowed lent;
  const std::span<const std::byte> from = lent.take_buffer(buffer, use::read);
  lent.make<pipe_worker>() = of->by.loop ? pipe_worker() : of->by;
  return finish_transfer(
      of->by.loop, lent, [of, from] { return of->pipe.start_write(from); },
      [size = from.size()] { return nb::object(nb::int_(size)); });
}

template <class Start>
nb::object pipe_object::ask(Start start) const {
  const dropped_at_end held{open()};
  const std::shared_ptr<state>& of = held.of;
  return finish_question(
      of->by.loop, [of, start] { return start(of->pipe); }, nothing);
}

nb::object pipe_object::flush() {
  return ask([](ucx::async_pipe& pipe) { return pipe.start_flush(); });
}
nb::object pipe_object::close_output() {
  return ask([](ucx::async_pipe& pipe) { return pipe.start_close_output(); });
}
nb::object pipe_object::close() {
  return ask([](ucx::async_pipe& pipe) { return pipe.start_close(); });
}

void pipe_object::abort() {
  if (!state_ || ucx::is_forked_child()) return;
  const std::shared_ptr<state> of = state_;
  const without_gil free;
  of->pipe.abort();
}

void pipe_object::drop() {
  std::shared_ptr<state> gone = std::exchange(state_, nullptr);
  if (!gone) return;
  const without_gil free;
  if (!ucx::is_forked_child()) gone->pipe.abort();
  gone.reset();
}

bool pipe_object::is_open() const { return state_ && state_->pipe.is_open(); }
std::uint64_t pipe_object::received() const { return open()->pipe.received(); }
std::uint64_t pipe_object::sent() const { return open()->pipe.sent(); }

pipe_place_object::pipe_place_object(
    const std::string& where, const std::string& mode, bool in_loop, std::size_t window,
    std::optional<double> timeout, std::optional<double> connect_timeout,
    std::optional<double> heartbeat_timeout, std::size_t writers, std::size_t readers,
    const std::string& slow_reader, std::optional<double> slow_reader_timeout,
    const std::vector<std::string>& transports, const std::string& token_file,
    const std::map<std::string, std::string>& configuration)
    : mode_(mode_of(mode)) {
  refuse_forked_child();
  options_.window = window;
  options_.timeout = duration_of(timeout);
  set(options_.connect_timeout, connect_timeout);
  set(options_.heartbeat_timeout, heartbeat_timeout);
  options_.writers = writers;
  options_.readers = readers;
  options_.slow_reader = value_of<ucx::slow_reader_policy>(slow_reader, "policy");
  set(options_.slow_reader_timeout, slow_reader_timeout);
  ucx::context_options context;
  context.name = "ucxio pipe";
  context.transports = transports;
  context.token_file = token_file;
  context.configuration = configuration;
  const ucx::url server(where);
  const ucx::worker_options driving = worker_options_for(options_, in_loop);
  std::tie(where_, by_) = aside([server, context, driving, in_loop]() mutable {
    ucx::url way = way_to(server, context, driving.connect_timeout);
    ucx::worker made(ucx::context(context), driving);
    pipe_worker by;
    if (in_loop) {
      by.loop = std::make_shared<loop_worker>(std::move(made));
    } else {
      by.own = std::make_shared<ucx::worker>(std::move(made));
    }
    return std::pair(std::move(way), std::move(by));
  });
}

pipe_place_object::~pipe_place_object() {
  const without_gil free;
  by_ = {};
}

nb::object pipe_place_object::worker() const {
  return nb::cast(new loop_worker_object(by_.loop), nb::rv_policy::take_ownership);
}

nb::object pipe_place_object::open() {
  const auto made = std::make_shared<ucx::async_pipe>();
  return finish_question(
      by_.loop,
      [by = by_, where = where_, mode = mode_, options = options_, made] {
        return ucx::async_pipe::start_open(by.get(), where, mode, *made, options);
      },
      [by = by_, made] {
        std::shared_ptr<pipe_object::state> open = note(by, std::move(*made));
        if (!by.loop) return nb::cast(pipe_object(std::move(open)));
        return nb::cast(loop_pipe_object(std::move(open)));
      },
      made);
}

void end_pipes() noexcept {
  std::vector<std::weak_ptr<pipe_object::state>> all;
  {
    const std::lock_guard guard(pipes().lock);
    all.swap(pipes().made);
  }
  for (const std::weak_ptr<pipe_object::state>& each : all) {
    const std::shared_ptr<pipe_object::state> of = each.lock();
    if (!of) continue;
    of->pipe = ucx::async_pipe();
    of->by = {};
  }
}

namespace {

/// Adds what all ends have.
template <class Object>
void add_pipe_as(nb::module_& module, const char* name) {
  nb::class_<Object>(module, name)
      .def_prop_ro("is_open", &Object::is_open)
      .def_prop_ro("received", &Object::received)
      .def_prop_ro("sent", &Object::sent)
      .def("read_into", &Object::read_into, nb::arg("buffer").none())
      .def("write_from", &Object::write_from, nb::arg("buffer").none())
      .def("flush", &Object::flush)
      .def("close_output", &Object::close_output)
      .def("close", &Object::close)
      .def("abort", &Object::abort)
      .def("drop", &Object::drop);
}

}  // namespace

void add_pipe(nb::module_& module) {
  add_pipe_as<pipe_object>(module, "Pipe");
  add_pipe_as<loop_pipe_object>(module, "LoopPipe");
  using place = pipe_place_object;
  nb::class_<place>(module, "PipePlace")
      .def(
          nb::init<const std::string&, const std::string&, bool, std::size_t, std::optional<double>,
                   std::optional<double>, std::optional<double>, std::size_t, std::size_t,
                   const std::string&, std::optional<double>, const std::vector<std::string>&,
                   const std::string&, const std::map<std::string, std::string>&>(),
          nb::arg("url"), nb::arg("mode"), nb::arg("in_loop"), nb::arg("window"),
          nb::arg("timeout").none(), nb::arg("connect_timeout").none(),
          nb::arg("heartbeat_timeout").none(), nb::arg("writers"), nb::arg("readers"),
          nb::arg("slow_reader"), nb::arg("slow_reader_timeout").none(), nb::arg("transports"),
          nb::arg("token_file"), nb::arg("configuration"))
      .def("worker", &place::worker)
      .def("open", &place::open);
}

}  // namespace ucxio_python
