// The extension module: what the package ucxio is made of.
#include <chrono>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <ucx/client.hpp>
#include <ucx/context.hpp>
#include <ucx/url.hpp>
#include <ucx/version.hpp>

#include "active_message.hpp"
#include "borrowed.hpp"
#include "call_form.hpp"
#include "call_queue.hpp"
#include "client_object.hpp"
#include "errors.hpp"
#include "exposed_memory.hpp"
#include "keyed_region.hpp"
#include "loop_operation.hpp"
#include "loop_worker.hpp"
#include "message_endpoint.hpp"
#include "message_listener.hpp"
#include "message_worker.hpp"
#include "pipe_object.hpp"
#include "plain_context.hpp"
#include "plain_endpoint.hpp"
#include "plain_worker.hpp"
#include "region_object.hpp"
#include "server_object.hpp"
#include "shared_view.hpp"
#include "waiting.hpp"
#include "without_gil.hpp"

namespace {

namespace nb = nanobind;
using namespace ucxio_python;

/// Returns the server's URL and the name.
std::pair<std::string, std::string> split_url(const std::string& text) {
  const ucx::url of(text);
  return {to_string(of.server()), of.name()};
}

std::string join_url(const std::string& server, const std::string& name) {
  return to_string(ucx::url(server).with_name(name));
}

std::vector<std::pair<std::string, std::string>> configuration() {
  return aside([] { return ucx::context().configuration(); });
}

std::string description() {
  return aside([] { return ucx::context().description(); });
}

/// Waits for calls that went on alone, and for no other thread.
void end(double limit) {
  if (ucx::is_forked_child()) return;
  {
    const without_gil free;
    side_call::wait_for_all(duration_of(limit));
  }
  stop_giving_back();
}

/// Has no thread use the library when the process's static objects go. No object of Python's is
/// there any more.
void end_of_interpreter() {
  if (ucx::is_forked_child()) return;
  without_gil::end_of_interpreter(std::chrono::seconds(2));
  end_pipes();
  close_servers();
}

}  // namespace

NB_MODULE(_core, module) {
  // Objects that a program still has when it ends are no leak of ours.
  nb::set_leak_warnings(false);
  // Refused where a process has many of them: then the servers go with the process.
  static_cast<void>(Py_AtExit(&end_of_interpreter));
  add_errors(module);
  add_shared_view(module);
  add_region(module);
  add_client(module);
  add_loop_operation(module);
  add_loop_worker(module);
  add_active_message(module);
  add_message_endpoint(module);
  add_message_listener(module);
  add_message_worker(module);
  add_plain_context(module);
  add_exposed_memory(module);
  add_plain_worker(module);
  add_plain_endpoint(module);
  add_keyed_region(module);
  add_pipe(module);
  add_call_form(module);
  add_call_queue(module);
  add_server(module);
  module.def(
      "check_buffer",
      [](nb::handle buffer) { static_cast<void>(borrowed().take_buffer(buffer, use::read)); },
      nb::arg("buffer").none());
  module.def("split_url", &split_url, nb::arg("url"));
  module.def("join_url", &join_url, nb::arg("server"), nb::arg("name"));
  module.def(
      "has_url_scheme", [](const std::string& text) { return ucx::url::has_url_scheme(text); },
      nb::arg("text"));
  module.def("version", [] { return to_string(ucx::version()); });
  module.def("ucx_version", [] { return to_string(ucx::ucx_version()); });
  module.def("protocol_version", &ucx::protocol_version);
  module.def("is_forked_child", &ucx::is_forked_child);
  module.def("refuse_forked_child", &refuse_forked_child);
  module.def("configuration", &configuration);
  module.def("description", &description);
  module.def("count_left_behind", [] {
    give_back();
    return count_left_behind();
  });
  module.def("end", &end, nb::arg("limit"));
}
