#include "client_object.hpp"

#include <span>
#include <string_view>
#include <utility>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <ucx/many_files.hpp>
#include <ucx/url.hpp>

#include "borrowed.hpp"
#include "call_values.hpp"
#include "entries.hpp"
#include "enumerators.hpp"
#include "errors.hpp"
#include "loop_operation.hpp"
#include "loop_worker.hpp"
#include "waiting.hpp"
#include "without_gil.hpp"

namespace ucxio_python {
namespace {

namespace nb = nanobind;

std::string text_of(std::error_code why, const std::string& name) {
  return "\"" + name + "\": " + why.message();
}

/// Files to be written, and what their bytes belong to.
struct files_to_write {
  left_behind kept;
  std::vector<ucx::short_file> files;
};

/// Returns the object of a region that was opened.
nb::object object_of(std::shared_ptr<ucx::client> through, ucx::remote_region made,
                     const std::shared_ptr<loop_worker>& loop) {
  if (!loop) return nb::cast(region_object(std::move(through), std::move(made)));
  return nb::cast(loop_region_object(std::move(through), std::move(made), loop));
}

/// A call, whose request waits elsewhere. What it has of Python's is the form, which is borrowed.
struct call_in_flight {
  call_in_flight(const call_form& of, std::shared_ptr<ucx::call_channel> over)
      : form(of), channel(std::move(over)) {}

  ucx::request start(const ucx::call_options& options) {
    call = channel->start_dynamic_call(form.called(), arguments, options);
    return std::move(static_cast<ucx::request&>(call));
  }
  nb::object result() { return read_result(form, call.result()); }

  const call_form& form;
  std::shared_ptr<ucx::call_channel> channel;
  ucx::call_writer arguments = {};
  ucx::call_request call = {};
};

/// A question for functions likewise.
struct listing_in_flight {
  explicit listing_in_flight(std::shared_ptr<ucx::call_channel> over) : channel(std::move(over)) {}

  ucx::request start(const ucx::call_options& options, const std::string& after) {
    call = channel->start_signatures(options, after);
    return std::move(static_cast<ucx::request&>(call));
  }
  nb::object result() {
    const ucx::call_listing found = call.result();
    nb::list functions;
    for (const ucx::call_description& each : found.functions) {
      const ucx::call_signature& signature = each.called.signature();
      functions.append(nb::make_tuple(each.called.name(), each.version, signature.text(),
                                      to_string(signature.hash()), each.documentation));
    }
    return nb::make_tuple(functions, found.is_whole);
  }

  std::shared_ptr<ucx::call_channel> channel;
  ucx::typed_call<ucx::call_listing> call = {};
};

}  // namespace

client_object::~client_object() {
  const without_gil free;
  channel_.reset();
  client_.reset();
  loop_.reset();
}

/// Returns another handle, which stays when this object goes.
ucx::client client_object::handle() const {
  refuse_forked_child();
  return client_->share();
}

client_object client_object::connect(const std::string& url,
                                     const std::vector<std::string>& transports,
                                     const std::string& token_file,
                                     std::optional<double> connect_timeout,
                                     std::optional<double> timeout,
                                     const std::map<std::string, std::string>& configuration) {
  const ucx::url server(url);
  ucx::client_options options;
  options.context.transports = transports;
  options.context.token_file = token_file;
  options.context.configuration = configuration;
  options.worker.connect_timeout = duration_of(connect_timeout);
  options.worker.operation_timeout = duration_of(timeout);
  return client_object(
      aside([server, options] { return std::make_shared<ucx::client>(server, options); }));
}

client_object client_object::shared(const std::string& url) {
  const ucx::url server(url);
  return client_object(
      aside([server] { return std::make_shared<ucx::client>(ucx::client::shared(server)); }));
}

std::string client_object::url() const { return to_string(handle().server()); }
std::string client_object::server_version() const { return handle().server_version(); }
std::string client_object::identity() const { return handle().identity(); }

std::vector<std::string> client_object::transports() const {
  const ucx::client with = handle();
  const without_gil free;
  return with.transports();
}

bool client_object::is_open() const {
  ucx::client with = handle();
  const without_gil free;
  if (loop_ || with.status()) return !with.status();
  try {
    // Between calls nobody drives the client. A round notices that the server has gone.
    with.worker().progress();
  } catch (const std::exception&) {  // the status tells
  }
  return !with.status();
}

/// Asks a question, whose answer is put into `target`. `start` gets the client.
template <class Start, class Result>
nb::object client_object::ask_server(Start start, Result result,
                                     std::shared_ptr<void> target) const {
  return finish_question(
      loop_, [with = shared_handle(), start = std::move(start)] { return start(*with); },
      std::move(result), std::move(target));
}

/// Returns the handle, for functions that can be copied.
std::shared_ptr<ucx::client> client_object::shared_handle() const {
  refuse_forked_child();
  return client_;
}

nb::object client_object::list(std::optional<double> timeout) {
  const ucx::io_options options = within(timeout);
  const auto found = std::make_shared<std::vector<ucx::entry>>();
  return ask_server([=](ucx::client& with) { return with.start_list(*found, options); },
                    [found] { return nb::object(fields_of(*found)); }, found);
}

nb::object client_object::list_directory(const std::string& directory,
                                         std::optional<double> timeout) {
  const ucx::io_options options = within(timeout);
  const auto found = std::make_shared<ucx::directory_listing>();
  return ask_server(
      [=](ucx::client& with) { return with.start_list_directory(directory, *found, options); },
      [found] { return nb::object(nb::make_tuple(fields_of(found->entries), found->unserved)); },
      found);
}

nb::object client_object::stat(const std::string& name, std::optional<double> timeout) {
  const ucx::io_options options = within(timeout);
  const auto found = std::make_shared<ucx::entry>();
  return ask_server([=](ucx::client& with) { return with.start_stat(name, *found, options); },
                    [found] { return nb::object(fields_of(*found)); }, found);
}

nb::object client_object::open(const std::string& name, const std::string& wanted,
                               std::optional<double> timeout) {
  const ucx::io_options options = within(timeout);
  const auto access = value_of<ucx::access>(wanted, "access");
  return open_by([=](ucx::client& with, ucx::remote_region& made) {
    return with.start_open(name, access, made, options);
  });
}

nb::object client_object::create(const std::string& name, const std::string& how, bool readable,
                                 std::optional<double> timeout) {
  const ucx::io_options options = within(timeout);
  const ucx::create_options wanted{.mode = value_of<ucx::creation>(how, "creation"),
                                   .readable = readable};
  return open_by([=](ucx::client& with, ucx::remote_region& made) {
    return with.start_create(name, wanted, made, options);
  });
}

/// Asks for a region. `start` gets the client, and where the region goes.
template <class Start>
nb::object client_object::open_by(Start start) const {
  const auto made = std::make_shared<ucx::remote_region>();
  const std::shared_ptr<ucx::client> with = shared_handle();
  return finish_question(
      loop_, [=] { return start(*with, *made); },
      [with, made, loop = loop_] { return object_of(with, std::move(*made), loop); }, made);
}

nb::list client_object::open_many(std::vector<std::string> names, const std::string& wanted,
                                  std::optional<double> timeout) {
  const ucx::io_options options = within(timeout);
  const auto access = value_of<ucx::access>(wanted, "access");
  ucx::client with = handle();
  auto found = aside([with = with.share(), names, access, options]() mutable {
    return ucx::open_many(with, names, access, options);
  });
  nb::list results;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].region) {
      results.append(nb::cast(region_object(shared_handle(), std::move(*found[i].region))));
    } else {
      results.append(error_of(found[i].error, text_of(found[i].error, names[i])));
    }
  }
  return results;
}

nb::list client_object::read_many(std::vector<std::string> names, std::size_t max_size,
                                  std::optional<double> timeout) {
  const ucx::io_options options = within(timeout);
  const auto found = aside([with = handle(), names, max_size, options]() mutable {
    return ucx::read_many(with, names, max_size, options);
  });
  nb::list results;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].error) {
      results.append(error_of(found[i].error, text_of(found[i].error, names[i])));
    } else {
      results.append(nb::bytes(found[i].bytes.data(), found[i].bytes.size()));
    }
  }
  return results;
}

nb::list client_object::write_many(nb::handle files, const std::string& how,
                                   std::optional<double> timeout) {
  ucx::io_options options = within(timeout);
  const auto creation = value_of<ucx::creation>(how, "creation");
  ucx::client with = handle();
  borrowed lent;
  std::vector<ucx::short_file> all;
  for (nb::handle each : nb::iter(files)) {
    const nb::tuple pair(each);
    if (nb::len(pair) != 2) throw nb::value_error("a file is a pair of a name and a buffer");
    const std::span<const std::byte> bytes = lent.take_buffer(pair[1], use::read);
    all.push_back({.name = nb::cast<std::string>(pair[0]), .bytes = bytes});
  }
  options.cuda_stream = lent.cuda_stream();
  // The call may go on when its caller has gone.
  auto given = std::make_shared<files_to_write>(
      files_to_write{left_behind(std::move(lent)), std::move(all)});
  const auto outcomes = aside([with = std::move(with), given, creation, options]() mutable {
    return ucx::write_many(with, given->files, creation, options);
  });
  nb::list results;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    results.append(outcomes[i] ? error_of(outcomes[i], text_of(outcomes[i], given->files[i].name))
                               : nb::none());
  }
  given.reset();
  give_back();
  return results;
}

nb::object client_object::remove(const std::string& name, std::optional<double> timeout) {
  const ucx::io_options options = within(timeout);
  return ask_server([=](ucx::client& with) { return with.start_remove(name, options); }, nothing);
}

nb::object client_object::rename(const std::string& from, const std::string& to,
                                 std::optional<double> timeout) {
  const ucx::io_options options = within(timeout);
  return ask_server([=](ucx::client& with) { return with.start_rename(from, to, options); },
                    nothing);
}

nb::object client_object::make_directory(const std::string& name, std::optional<double> timeout) {
  const ucx::io_options options = within(timeout);
  return ask_server([=](ucx::client& with) { return with.start_make_directory(name, options); },
                    nothing);
}

nb::object client_object::resize(const std::string& name, std::uint64_t size,
                                 std::optional<double> timeout) {
  const ucx::io_options options = within(timeout);
  return ask_server([=](ucx::client& with) { return with.start_resize(name, size, options); },
                    nothing);
}

std::shared_ptr<ucx::call_channel> client_object::channel() {
  if (!channel_) {
    std::shared_ptr<ucx::call_channel> made;
    {
      const ucx::client with = handle();
      const without_gil free;
      made = std::make_shared<ucx::call_channel>(with.connection());
    }
    if (!channel_) channel_ = std::move(made);  // another thread was sooner
  }
  return channel_;
}

nb::object client_object::call(nb::object called, nb::handle arguments,
                               std::optional<double> timeout) {
  refuse_forked_child();
  const ucx::call_options options{.timeout = duration_of(timeout)};
  borrowed lent;
  const auto& form = nb::cast<const call_form&>(called);
  lent.take(std::move(called));  // until the result is made
  const auto going = std::make_shared<call_in_flight>(form, channel());
  write_arguments(form, arguments, going->arguments, lent);
  return finish_transfer(
      loop_, lent, [going, options] { return going->start(options); },
      [going] { return going->result(); });
}

nb::object client_object::signatures(const std::string& after, std::optional<double> timeout) {
  refuse_forked_child();
  const ucx::call_options options{.timeout = duration_of(timeout)};
  const auto going = std::make_shared<listing_in_flight>(channel());
  return finish_question(
      loop_, [going, options, after] { return going->start(options, after); },
      [going] { return going->result(); });
}

void client_object::close() {
  if (ucx::is_forked_child()) return;
  aside([with = handle()]() mutable { with.close(); });
}

nb::object loop_client_object::start_close() {
  return ask_server([](ucx::client& with) { return with.connection().start_close(); }, nothing);
}

/// Adds what all clients have.
template <class Object>
nb::class_<Object> add_client_as(nb::module_& module, const char* name) {
  using object = Object;
  nb::class_<Object> made(module, name);
  made.def_prop_ro("url", &object::url)
      .def_prop_ro("server_version", &object::server_version)
      .def_prop_ro("identity", &object::identity)
      .def_prop_ro("transports", &object::transports)
      .def_prop_ro("is_open", &object::is_open)
      .def("list", &object::list, nb::arg("timeout").none())
      .def("list_directory", &object::list_directory, nb::arg("directory"),
           nb::arg("timeout").none())
      .def("stat", &object::stat, nb::arg("name"), nb::arg("timeout").none())
      .def("open", &object::open, nb::arg("name"), nb::arg("wanted"), nb::arg("timeout").none())
      .def("create", &object::create, nb::arg("name"), nb::arg("how"), nb::arg("readable"),
           nb::arg("timeout").none())
      .def("remove", &object::remove, nb::arg("name"), nb::arg("timeout").none())
      .def("rename", &object::rename, nb::arg("from_name"), nb::arg("to_name"),
           nb::arg("timeout").none())
      .def("make_directory", &object::make_directory, nb::arg("name"), nb::arg("timeout").none())
      .def("resize", &object::resize, nb::arg("name"), nb::arg("size"), nb::arg("timeout").none())
      .def("call", &object::call, nb::arg("called"), nb::arg("arguments"),
           nb::arg("timeout").none())
      .def("signatures", &object::signatures, nb::arg("after"), nb::arg("timeout").none());
  return made;
}

void add_client(nb::module_& module) {
  using object = client_object;
  add_client_as<object>(module, "Client")
      .def_static("connect", &object::connect, nb::arg("url"), nb::arg("transports"),
                  nb::arg("token_file"), nb::arg("connect_timeout").none(),
                  nb::arg("timeout").none(), nb::arg("configuration"))
      .def_static("shared", &object::shared, nb::arg("url"))
      .def("open_many", &object::open_many, nb::arg("names"), nb::arg("wanted"),
           nb::arg("timeout").none())
      .def("read_many", &object::read_many, nb::arg("names"), nb::arg("max_size"),
           nb::arg("timeout").none())
      .def("write_many", &object::write_many, nb::arg("files").none(), nb::arg("how"),
           nb::arg("timeout").none())
      .def("close", &object::close);
  add_client_as<loop_client_object>(module, "LoopClient")
      .def("close", &loop_client_object::start_close);
}

}  // namespace ucxio_python
