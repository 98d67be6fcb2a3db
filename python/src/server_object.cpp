#include "server_object.hpp"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <ucx/access_rules.hpp>
#include <ucx/error.hpp>

#include "entries.hpp"
#include "foreign_memory.hpp"
#include "waiting.hpp"
#include "without_gil.hpp"

namespace ucxio_python {
namespace {

namespace nb = nanobind;

ucx::access access_of(bool writable) {
  return writable ? ucx::access::read_write : ucx::access::read;
}

ucx::server make_server(const ucx::server_options& options) {
  return aside([options] { return ucx::server(options); });
}

/// All servers that were made.
struct all_servers {
  std::mutex lock;
  std::vector<std::weak_ptr<ucx::server>> made;
};

// Never destroyed: the interpreter may end after the static objects.
all_servers& servers() {
  static auto* const all = new all_servers();
  return *all;
}

void note(const std::shared_ptr<ucx::server>& made) {
  const std::lock_guard guard(servers().lock);
  std::erase_if(servers().made, [](const auto& each) { return each.expired(); });
  servers().made.push_back(made);
}

/// What a view keeps: the memory goes with its name, and with its server.
template <class State>
struct kept_memory {
  std::shared_ptr<ucx::server> server;
  std::shared_ptr<State> shown;  // goes first
};

}  // namespace

publication_object::publication_object(const std::shared_ptr<ucx::server>& server,
                                       ucx::publication of, has memory, borrowed&& lent)
    : state_(new state{{}, memory, left_behind(std::move(lent)), std::move(of), server}) {}

publication_object::~publication_object() {
  if (!state_) return;
  {
    const without_gil free;
    state_.reset();
  }
  give_back();
}

std::shared_ptr<publication_object::state> publication_object::open() const {
  refuse_forked_child();
  if (!state_) throw ucx::error(ucx::errc::closed, "the publication was closed");
  return state_;
}

std::string publication_object::name() const { return open()->of.name(); }
std::uint64_t publication_object::size() const { return open()->of.size(); }
std::string publication_object::granted() const {
  return std::string(to_string(open()->of.granted()));
}
std::string publication_object::url() const {
  const std::shared_ptr<state> shown = open();
  const without_gil free;
  return shown->of.url();
}

bool publication_object::is_open() const {
  if (!state_ || ucx::is_forked_child()) return false;
  const std::shared_ptr<state> shown = state_;
  const without_gil free;
  return shown->of.is_open();
}

nb::object publication_object::view(bool writable) const {
  const std::shared_ptr<state> shown = open();
  if (shown->memory == publication_object::has::files) {
    throw ucx::error(ucx::errc::not_supported, "a file or a store has no memory to be viewed");
  }
  std::shared_ptr<ucx::server> server = shown->server.lock();
  if (shown->is_over || !server || !shown->of.is_open()) {
    throw ucx::error(ucx::errc::closed, "the server of the publication was closed");
  }
  auto owner = std::make_shared<kept_memory<state>>(std::move(server), shown);
  return make_memoryview(shown->of.bytes(), writable, std::move(owner), shown->lent);
}

void publication_object::close() {
  if (!state_) return;
  state_->lent.refuse_if_lent("closing a publication");
  if (ucx::is_forked_child()) return;
  aside([gone = std::exchange(state_, nullptr)] { gone->of.close(); });
  give_back();
}

server_object::server_object(const std::string& bind, const std::vector<std::string>& transports,
                             bool insecure, const std::string& token_file,
                             const std::vector<std::uint32_t>& peer_users,
                             std::optional<std::string> rules, std::size_t max_clients,
                             std::size_t workers, const std::string& audit_file, bool pipes) {
  ucx::server_options options;
  options.bind = bind;
  options.insecure = insecure;
  options.context.transports = transports;
  options.context.token_file = token_file;
  options.context.peer_users = peer_users;
  options.max_clients = max_clients;
  options.workers = workers;
  options.audit_file = audit_file;
  if (rules) options.rules = ucx::access_rules::parse(*rules);
  server_ = std::make_shared<ucx::server>(make_server(options));
  note(server_);
  if (!pipes) return;
  const without_gil free;
  try {
    broker_ = std::make_shared<ucx::pipe_broker>(*server_);
  } catch (...) {
    server_.reset();  // its end waits for threads: not with the GIL
    throw;
  }
}

server_object::~server_object() {
  const without_gil free;
  calls_->end();
  broker_.reset();
  server_.reset();
}

std::shared_ptr<ucx::server> server_object::server() const {
  refuse_forked_child();
  if (!server_) throw ucx::error(ucx::errc::closed, "the server was closed");
  return server_;
}

/// Takes note of a publication that has memory.
publication_object server_object::remember(publication_object&& made) {
  // It may have been closed while the name was published.
  made.state_->is_over = !server_;
  std::erase_if(memories_, [](const auto& each) { return each.expired(); });
  memories_.push_back(made.state_);
  return std::move(made);
}

bool server_object::is_lent() const noexcept {
  return std::any_of(memories_.begin(), memories_.end(), [](const auto& each) {
    const std::shared_ptr<memory> shown = each.lock();
    return shown && shown->lent.is_lent();
  });
}

publication_object server_object::publish(const std::string& name, nb::handle buffer,
                                          bool writable) {
  const auto with = server();
  borrowed lent;
  const std::span<std::byte> bytes = lent.take_buffer(buffer, writable ? use::write : use::read);
  ucx::publication made;
  {
    const without_gil free;
    wait_for_stream(bytes, lent.cuda_stream());
    made = writable ? with->publish(name, bytes, ucx::access::read_write)
                    : with->publish(name, std::span<const std::byte>(bytes));
  }
  return remember({with, std::move(made), publication_object::has::bytes, std::move(lent)});
}

publication_object server_object::allocate(const std::string& name, std::size_t size,
                                           bool writable) {
  const auto with = server();
  ucx::publication made;
  {
    const without_gil free;
    made = with->allocate(name, size, access_of(writable));
  }
  return remember({with, std::move(made), publication_object::has::bytes, borrowed()});
}

publication_object server_object::publish_file(const std::string& name, const std::string& file) {
  const auto with = server();
  return {with, aside([with, name, file] { return with->publish_file(name, file); }),
          publication_object::has::files, borrowed()};
}

publication_object server_object::publish_store(const std::string& directory,
                                                const std::string& prefix, bool writable,
                                                std::optional<std::uint64_t> quota,
                                                bool in_memory) {
  ucx::store_options options;
  options.prefix = prefix;
  options.writable = writable;
  if (quota) options.quota = *quota;
  const auto with = server();
  return {with, aside([with, directory, options, in_memory] {
            if (!in_memory) return with->publish_store(directory, options);
            return directory.empty() ? with->allocate_store(options)
                                     : with->allocate_store(options, directory);
          }),
          publication_object::has::files, borrowed()};
}

nb::list server_object::list() const {
  const auto with = server();
  std::vector<ucx::entry> found;
  {
    const without_gil free;
    found = with->list();
  }
  return fields_of(found);
}

std::string server_object::url(const std::string& name) const {
  const auto with = server();
  const without_gil free;
  return with->url(name);
}
std::string server_object::invite(const std::string& name) {
  return aside([with = server(), name] { return with->invite(name); });
}
void server_object::publish_address(const std::string& file) {
  aside([with = server(), file] { with->publish_address(file); });
}

void server_object::add_call(const call_form& form, const call_queue_object& queue,
                             std::uint64_t number, const std::string& documentation) {
  const auto& arguments = form.types()->arguments;
  const bool has_window = std::any_of(arguments.begin(), arguments.end(), [](const auto& each) {
    return each.what == call_type::kind::window;
  });
  if (has_window) {
    throw ucx::error(ucx::errc::not_supported, "a function of Python's opens no windows");
  }
  const auto with = server();
  const without_gil free;
  calls_->add(with, form.called(), form.types(), queue.queue(), number, documentation);
}

nb::tuple server_object::statistics() const {
  const auto with = server();
  ucx::server_statistics found;
  {
    const without_gil free;
    found = with->statistics();
  }
  return nb::make_tuple(found.clients, found.clients_served, found.names, found.opens,
                        found.refusals);
}

bool server_object::is_open() const { return server_ != nullptr; }

void server_object::close() {
  if (!server_) return;
  for (const std::weak_ptr<memory>& each : memories_) {
    if (const auto shown = each.lock()) shown->lent.refuse_if_lent("closing a server");
  }
  if (!ucx::is_forked_child()) close_now();
}

void server_object::end() {
  if (!ucx::is_forked_child()) {
    const without_gil free;
    calls_->close_queues();
  }
  if (server_ && !is_lent() && !ucx::is_forked_child()) close_now();
}

void server_object::close_now() {
  for (const std::weak_ptr<memory>& each : memories_) {
    if (const auto shown = each.lock()) shown->is_over = true;
  }
  memories_.clear();
  aside([gone = std::exchange(server_, nullptr), broker = std::exchange(broker_, nullptr),
         calls = calls_]() mutable {
    calls->end();
    broker.reset();
    gone->close();
  });
}

void close_servers() noexcept {
  std::vector<std::weak_ptr<ucx::server>> all;
  {
    const std::lock_guard guard(servers().lock);
    all.swap(servers().made);
  }
  for (const std::weak_ptr<ucx::server>& each : all) {
    if (const auto made = each.lock()) made->close();
  }
}

void add_server(nb::module_& module) {
  using publication = publication_object;
  using object = server_object;
  nb::class_<publication>(module, "Publication")
      .def_prop_ro("name", &publication::name)
      .def_prop_ro("size", &publication::size)
      .def_prop_ro("access", &publication::granted)
      .def_prop_ro("url", &publication::url)
      .def_prop_ro("is_open", &publication::is_open)
      .def("view", &publication::view, nb::arg("writable"))
      .def("close", &publication::close);
  nb::class_<object>(module, "Server")
      .def(nb::init<const std::string&, const std::vector<std::string>&, bool, const std::string&,
                    const std::vector<std::uint32_t>&, std::optional<std::string>, std::size_t,
                    std::size_t, const std::string&, bool>(),
           nb::arg("bind"), nb::arg("transports"), nb::arg("insecure"), nb::arg("token_file"),
           nb::arg("peer_users"), nb::arg("rules").none(), nb::arg("max_clients"),
           nb::arg("workers"), nb::arg("audit_file"), nb::arg("pipes"))
      .def("publish", &object::publish, nb::arg("name"), nb::arg("buffer").none(),
           nb::arg("writable"))
      .def("allocate", &object::allocate, nb::arg("name"), nb::arg("size"), nb::arg("writable"))
      .def("publish_file", &object::publish_file, nb::arg("name"), nb::arg("file"))
      .def("publish_store", &object::publish_store, nb::arg("directory"), nb::arg("prefix"),
           nb::arg("writable"), nb::arg("quota").none(), nb::arg("in_memory"))
      .def("list", &object::list)
      .def("url", &object::url, nb::arg("name"))
      .def("invite", &object::invite, nb::arg("name"))
      .def("publish_address", &object::publish_address, nb::arg("file"))
      .def("add_call", &object::add_call, nb::arg("form"), nb::arg("queue"), nb::arg("number"),
           nb::arg("documentation"))
      .def("statistics", &object::statistics)
      .def_prop_ro("is_open", &object::is_open)
      .def("close", &object::close)
      .def("end", &object::end);
}

}  // namespace ucxio_python
