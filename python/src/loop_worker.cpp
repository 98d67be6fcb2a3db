#include "loop_worker.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <ucx/context.hpp>
#include <ucx/endpoint.hpp>
#include <ucx/url.hpp>

#include "borrowed.hpp"
#include "client_object.hpp"
#include "loop_operation.hpp"
#include "waiting.hpp"
#include "without_gil.hpp"

namespace ucxio_python {
namespace {

namespace nb = nanobind;

/// Returns the transports that the scheme of a URL means, unless some are named.
std::vector<std::string> transports_for(const ucx::url& server,
                                        const std::vector<std::string>& named) {
  if (!named.empty()) return named;
  if (server.is_tls()) return {"tls"};
  if (server.is_socket()) return {"socket"};
  return {};
}

}  // namespace

void ended_operations::add(std::uint64_t number) {
  const std::lock_guard guard(lock_);
  numbers_.push_back(number);
}

std::vector<std::uint64_t> ended_operations::take() {
  const std::lock_guard guard(lock_);
  return std::exchange(numbers_, {});
}

std::optional<double> loop_worker::drive(std::size_t rounds) {
  constexpr std::chrono::nanoseconds least = std::chrono::microseconds(1);
  for (std::size_t i = 0; i < rounds; ++i) {
    if (worker_.progress() || !worker_.arm()) continue;
    const std::chrono::nanoseconds next = worker_.next_timeout();
    if (next == std::chrono::nanoseconds::max()) return std::nullopt;
    return std::chrono::duration<double>(std::max(next, least)).count();
  }
  return 0.0;
}

std::shared_ptr<ucx::client> make_loop_client() {
  const auto drop = [](ucx::client* gone) {
    std::error_code ignored;
    if (!ucx::is_forked_child()) gone->connection().close(ucx::close_mode::abort, ignored);
    delete gone;
  };
  return {new ucx::client(), drop};
}

loop_worker_object::loop_worker_object(const std::string& url,
                                       const std::vector<std::string>& transports,
                                       const std::string& token_file,
                                       std::optional<double> connect_timeout,
                                       std::optional<double> timeout,
                                       const std::map<std::string, std::string>& configuration) {
  refuse_forked_child();
  ucx::context_options context;
  context.transports = transports_for(ucx::url(url), transports);
  context.token_file = token_file;
  context.configuration = configuration;
  ucx::worker_options worker;
  worker.progress = ucx::progress_mode::external;
  // Garbage is collected on any thread.
  worker.thread_mode = ucx::thread_mode::multi;
  worker.connect_timeout = duration_of(connect_timeout);
  worker.operation_timeout = duration_of(timeout);
  const without_gil free;
  worker_ = std::make_shared<loop_worker>(ucx::worker(ucx::context(context), worker));
}

loop_worker_object::~loop_worker_object() {
  const without_gil free;
  worker_.reset();
}

int loop_worker_object::event_fd() const { return worker_->worker().event_fd(); }

nb::tuple loop_worker_object::turn(std::size_t rounds) {
  refuse_forked_child();
  std::optional<double> next;
  {
    const without_gil free;
    next = worker_->drive(rounds);
  }
  give_back();
  nb::list ended;
  for (const std::uint64_t number : worker_->ended()->take()) ended.append(number);
  return nb::make_tuple(ended, next ? nb::object(nb::float_(*next)) : nb::none());
}

nb::object loop_worker_object::connect(const std::string& url, std::optional<double> timeout) {
  const ucx::io_options options = within(timeout);
  const ucx::url server(url);
  const std::shared_ptr<ucx::client> made = make_loop_client();
  return finish_question(
      worker_,
      [over = worker_, server, made, options] {
        return ucx::client::start_connect(over->worker(), server, *made, options);
      },
      [over = worker_, made] { return nb::cast(loop_client_object(made, over)); }, made);
}

void add_loop_worker(nb::module_& module) {
  using object = loop_worker_object;
  nb::class_<object>(module, "LoopWorker")
      .def(nb::init<const std::string&, const std::vector<std::string>&, const std::string&,
                    std::optional<double>, std::optional<double>,
                    const std::map<std::string, std::string>&>(),
           nb::arg("url"), nb::arg("transports"), nb::arg("token_file"),
           nb::arg("connect_timeout").none(), nb::arg("timeout").none(), nb::arg("configuration"))
      .def_prop_ro("event_fd", &object::event_fd)
      .def("turn", &object::turn, nb::arg("rounds"))
      .def("connect", &object::connect, nb::arg("url"), nb::arg("timeout").none());
}

}  // namespace ucxio_python
