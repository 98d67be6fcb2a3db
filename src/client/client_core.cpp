#include "client/client_core.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/deadline.hpp"
#include "base/error_text.hpp"
#include "base/forked_child.hpp"
#include "base/name.hpp"
#include "base/store_path.hpp"
#include "connection/endpoint_core.hpp"
#include "os/network_device.hpp"
#include "os/resolver.hpp"
#include "region/remote_region_core.hpp"
#include "store/address_file.hpp"
#include "ucx/error.hpp"
#include "ucx/version.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

worker_core& core_of(const ucx::worker& handle) { return *core_access::core(handle); }

endpoint_core& core_of(const endpoint& handle) { return *core_access::core(handle); }

/// A server that has answered within this is there: none ends and comes again meanwhile.
constexpr std::chrono::milliseconds moment{10};

/// Returns how the client's worker is driven.
worker_options driving(const client_options& options) {
  worker_options chosen = options.worker;
  if (chosen.threads == thread_safety::automatic) chosen.threads = thread_safety::safe;
  return chosen;
}

/// Makes the client's context; `limit` counts unless the caller chose devices.
result<context> make_context(const client_options& options, const device_limit& limit) {
  context_options chosen = options.context;
  if (chosen.name.empty()) chosen.name = "ucxio client";
  return core_access::make_context(real_ucp(), chosen, limit);
}

/// The server says only that it does not hand out what has the name.
failure of_unserved(failure why, std::string_view what) {
  if (why.code == errc::not_supported) why.text.append(", which is ").append(what);
  return why;
}

}  // namespace

client_core::client_core(ucx::worker&& driver, endpoint&& connection)
    : worker_(std::move(driver)),
      endpoint_(std::move(connection)),
      channel_(core_of(*endpoint_)),
      session_(channel_, [this](std::uint64_t region) { revoked(region); }),
      releasing_(std::make_shared<client_session*>(&session_)) {
  const std::lock_guard guard(core_of(worker_).lock());
  core_of(*endpoint_).control().set_receiver(&session_);
}

client_core::~client_core() {
  worker_core& core = core_of(worker_);
  {
    const std::lock_guard guard(core.lock());
    core_of(*endpoint_).control().set_receiver(nullptr);
    *releasing_ = nullptr;
    try {
      if (!session_.over()) session_.leave();
    } catch (const std::bad_alloc&) {  // the peer learns it from the end of the connection
    }
  }
  endpoint_.reset();
}

std::shared_ptr<endpoint_core> client_core::connection() const noexcept {
  return core_access::core(*endpoint_);
}

template <class Place>
void client_core::remember_way(const Place& server, const client_options& options) {
  const auto way = [&server](const client_options& chosen) {
    return [server, chosen] { return connect(server, chosen); };
  };
  client_options driven = options;
  driven.worker.progress = progress_mode::sleeping_thread;
  again_ = way(options);
  beside_ = way(driven);
}

result<std::shared_ptr<client_core>> client_core::lane(std::size_t number) {
  if (closed_ || !beside_ || is_forked_child()) {
    const errc why = closed_             ? errc::closed
                     : is_forked_child() ? errc::forked_child
                                         : errc::not_supported;
    return failure{why, "connecting once more to " + place()};
  }
  client_slot* slot = nullptr;
  {
    const std::lock_guard guard(lanes_mutex_);
    slot = &lanes_[number];
  }
  return slot->get(beside_);
}

result<std::shared_ptr<client_core>> client_core::connect(const url& server,
                                                          const client_options& options) {
  if (server.empty()) return failure{errc::bad_url, "connecting to a URL that is empty"};
  auto made = server.address_file().empty() ? connect_by_host(server, options)
                                            : connect_by_file(server, options);
  if (!made) {
    return failure{made.why().code, to_string(server.server()) + ": " + made.why().text};
  }
  (*made)->server_ = server.server();
  (*made)->remember_way(server, options);
  return made;
}

result<std::shared_ptr<client_core>> client_core::connect_by_host(const url& server,
                                                                  const client_options& options) {
  client_options left = options;
  std::chrono::nanoseconds limit = options.worker.connect_timeout;
  if (limit <= limit.zero()) limit = worker_options().connect_timeout;
  const auto begin = std::chrono::steady_clock::now();
  const auto found = look_up(server.host(), server.port(), limit);
  if (!found) return found.why();
  failure first;
  for (std::size_t tried = 0; tried < found->size(); ++tried) {
    // One deadline for all addresses of the host: each has its share of what is left.
    const std::chrono::nanoseconds used = std::chrono::steady_clock::now() - begin;
    left.worker.connect_timeout = share_of(limit - used, found->size() - tried);
    result<std::shared_ptr<client_core>> made = failure{errc::timed_out, "connecting"};
    if (left.worker.connect_timeout > limit.zero()) {
      const socket_address& address = (*found)[tried];
      auto parent = make_context(options, devices_towards(address));
      if (!parent) return parent.why();
      made = connect(*std::move(parent), address, left);
      if (made) return made;
    }
    // IPv6 is refused before anything is tried; another address may say more.
    if (!first.code || first.code == errc::not_supported) first = made.why();
  }
  return first;
}

/// A server that was started again has written another address.
result<std::shared_ptr<client_core>> client_core::connect_by_file(const url& server,
                                                                  const client_options& options) {
  const auto where = address_file::read(server.address_file());
  if (!where) return where.why();
  device_limit limit{{}, "a worker address may lead to any interface"};
  if (where->local) limit = devices_towards(socket_address("127.0.0.1:0"));
  auto parent = make_context(options, limit);
  if (!parent) return parent.why();
  return connect(*std::move(parent), where->address, options);
}

result<std::shared_ptr<client_core>> client_core::successor(
    const std::shared_ptr<client_core>& lost) {
  lost->worker().progress();  // nobody may have looked at it for long
  const std::error_code why = lost->closed_ ? make_error_code(errc::closed) : lost->status();
  if (!why) return lost;
  if (why == errc::closed || why == errc::forked_child || !lost->again_) {
    return failure{why, "connecting again to " + lost->place()};
  }
  return lost->successor_.get(lost->again_);
}

result<std::shared_ptr<client_core>> client_core::connect(const worker_address& server,
                                                          const client_options& options) {
  auto parent = make_context(options, {});
  if (!parent) return parent.why();
  auto made = connect(*std::move(parent), server, options);
  if (made) (*made)->remember_way(server, options);
  return made;
}

template <class Address>
result<std::shared_ptr<client_core>> client_core::connect_on(context& parent, const Address& server,
                                                             const client_options& options) {
  try {
    ucx::worker driver(parent, driving(options));
    const clock::time_point deadline =
        core_of(driver).deadline_after(core_of(driver).options().connect_timeout);
    endpoint connection(driver, server);
    connection.wait_connected();  // by socket address it is
    return greet(std::move(driver), std::move(connection), deadline);
  } catch (const error& thrown) {
    return failure_of(thrown);
  }
}

result<std::shared_ptr<client_core>> client_core::connect(context parent,
                                                          const socket_address& server,
                                                          const client_options& options) {
  return connect_on(parent, server, options);
}

result<std::shared_ptr<client_core>> client_core::connect(context parent,
                                                          const worker_address& server,
                                                          const client_options& options) {
  return connect_on(parent, server, options);
}

result<std::shared_ptr<client_core>> client_core::greet(ucx::worker&& driver, endpoint&& connection,
                                                        clock::time_point deadline) {
  std::shared_ptr<client_core> made(new client_core(std::move(driver), std::move(connection)));
  hello_body hello;
  hello.library = to_string(version());
  hello.features = control_feature::all;
  const std::string doing = "greeting the server at " + core_of(*made->endpoint_).peer_name();
  const auto answer = made->ask(control_type::hello, control_type::welcome, hello, deadline, doing);
  if (!answer) return answer.why();
  const std::optional<welcome_body> welcome = decode_welcome(*answer);
  if (!welcome) return failure{errc::protocol_error, doing};
  made->server_version_ = welcome->library;
  made->features_ = welcome->features;
  return made;
}

result<std::vector<std::byte>> client_core::await(
    control_type answer_type, clock::time_point deadline, const std::string& doing,
    const std::function<void(client_session::question&)>& send) {
  client_session::question asked{.answer_type = answer_type};
  ask_all(
      {&asked, 1}, [&](std::size_t) { send(asked); }, deadline);
  if (!asked.outcome) return std::move(asked.answer);
  failures_.fetch_add(1, std::memory_order_relaxed);
  failure why{asked.outcome, doing};
  if (const std::optional<welcome_body> refused = decode_welcome(asked.answer)) {
    if (why.code == errc::version_mismatch) {
      why.text += ": it speaks version " + std::to_string(refused->version) +
                  " of the control protocol, this library (" + to_string(version()) + ") version " +
                  std::to_string(control_version);
    } else if (why.code == errc::busy) {
      why.text += ": it has as many clients as it takes";
    } else if (why.code == errc::connection_refused) {
      why.text += ": it is a worker that serves no names, or its server was closed";
    }
  } else if (const std::string words = core_of(*endpoint_).words(); !words.empty()) {
    why.text += " (" + words + ")";
  }
  return why;
}

void client_core::ask_all(std::span<client_session::question> asked,
                          const std::function<void(std::size_t)>& send,
                          clock::time_point deadline) {
  worker_core& core = core_of(worker_);
  endpoint_core& connection = core_of(*endpoint_);
  requests_.fetch_add(asked.size(), std::memory_order_relaxed);
  std::error_code unasked;
  if (is_forked_child()) unasked = errc::forked_child;
  if (core.in_handler()) unasked = errc::would_deadlock;
  for (client_session::question& each : asked) {
    if (unasked) each.outcome = unasked;
  }
  if (unasked) return;
  // The session is not to answer into what has gone.
  const auto forget = [&] {
    const std::lock_guard guard(core.lock());
    connection.liveness().expected_control();
    for (client_session::question& each : asked) {
      session_.forget(each);
      if (!each.done) each.outcome = errc::timed_out;
    }
  };
  {
    const std::lock_guard guard(core.lock());
    connection.liveness().expect_control();
  }
  std::size_t first = 0;  // before it all are done
  try {
    {
      const std::lock_guard guard(core.lock());
      for (std::size_t i = 0; i < asked.size(); ++i) {
        if (!asked[i].done) send(i);
      }
    }
    core.wait_until(deadline, [&] {
      while (first < asked.size() && asked[first].done) ++first;
      return first == asked.size();
    });
  } catch (...) {
    forget();
    throw;
  }
  forget();
  if (first > 0) heard_at_.store(now(), std::memory_order_relaxed);
}

result<void> client_core::hear(std::string_view name) {
  if (now() - heard_at_.load(std::memory_order_relaxed) < moment && !status()) return {};
  const auto said = stat(name, {});
  if (said) return {};
  if (said.why().code != errc::timed_out && !status()) return {};
  return said.why();
}

clock::time_point client_core::deadline_after(const io_options& options) {
  const std::lock_guard guard(core_of(worker_).lock());
  return core_of(worker_).deadline_after(options.timeout);
}

clock::time_point client_core::now() const noexcept { return core_of(worker_).api().now(); }

std::string client_core::attempt(std::string_view doing, std::string_view name) const {
  return std::string(doing) + " \"" + std::string(name) + "\" at " + place();
}

std::string client_core::place() const {
  return server_.empty() ? "the server at " + core_of(*endpoint_).peer_name() : to_string(server_);
}

result<void> client_core::check_name(std::string_view name) {
  const std::string_view complaint = complaint_about_name(name);
  if (complaint.empty()) return {};
  return failure{errc::bad_name, "a name that can not be one: " + std::string(complaint)};
}

result<std::vector<entry>> client_core::list(const io_options& options) {
  auto found = list_all({}, deadline_after(options), "listing what " + place() + " publishes");
  if (!found) return found.why();
  return std::move(found->entries);
}

/// Returns whether `listed` can follow what was asked for: a page that does not go on would be
/// asked for again and again, and whoever lists a directory believes that nothing else is named.
bool client_core::continues(const list_body& asked, const listed_body& listed) {
  if (listed.more && listed.entries.empty()) return false;
  const std::string* before = &asked.after;
  const std::string inside =
      asked.directory && !asked.directory->empty() ? *asked.directory + '/' : std::string();
  for (const entry& each : listed.entries) {
    if (each.name <= *before) return false;
    before = &each.name;
    if (!asked.directory) continue;
    if (!each.name.starts_with(inside)) return false;
    const std::string_view leaf = std::string_view(each.name).substr(inside.size());
    if (!complaint_about_path(leaf).empty() || leaf.find('/') != leaf.npos) return false;
  }
  return true;
}

result<entry> client_core::stat(std::string_view name, const io_options& options) {
  if (const auto fit = check_name(name); !fit) return fit.why();
  const std::string doing = attempt("asking about", name);
  const auto answer = ask(control_type::stat, control_type::described, stat_body{std::string(name)},
                          deadline_after(options), doing);
  if (!answer) return of_unserved(answer.why(), "neither a file nor a directory");
  std::optional<described_body> described = decode_described(*answer);
  if (described && described->described.name == name) return std::move(described->described);
  return failure{errc::protocol_error, doing};
}

result<remote_region> client_core::open(std::string_view name, access wanted,
                                        const io_options& options) {
  if (const auto fit = check_name(name); !fit) return fit.why();
  const std::string doing = attempt("opening", name);
  const auto answer = ask(control_type::open, control_type::opened,
                          open_body{std::string(name), wanted}, deadline_after(options), doing);
  if (!answer) return of_unserved(answer.why(), "no regular file");
  return region_of(*answer, name, wanted, doing);
}

result<remote_region> client_core::region_of(const std::vector<std::byte>& answer,
                                             std::string_view name, access wanted,
                                             const std::string& doing) {
  failure why{{}, doing};
  std::error_code& ec = why.code;
  const std::optional<opened_body> opened = decode_opened(answer);
  remote_region made = core_access::empty_region();
  if (!opened || opened->described.name != name) ec = errc::protocol_error;
  remote_descriptor descriptor;
  if (!ec) descriptor = remote_descriptor::decode(opened->descriptor, ec);
  if (!ec) {
    // No more than was asked for: a mistake of the program shows here, as with a file.
    descriptor.granted = wanted;
    try {
      made = remote_region(*endpoint_, descriptor);
    } catch (const error& failed) {
      why = {failed.code(), doing + ": " + text_of(failed)};
    }
  }
  // Only its owner can make something longer.
  if (!ec && opened->limit > 0 && made.way() != way::message) ec = errc::protocol_error;
  if (ec) {  // the server holds it for us, maybe
    const std::lock_guard guard(core_of(worker_).lock());
    session_.release_unwanted(answer);
    return why;
  }
  opens_.fetch_add(1, std::memory_order_relaxed);
  remote_region_core& core = *core_access::core(made);
  {
    const std::lock_guard guard(core_of(worker_).lock());
    if (opened->described.type == entry_type::file) {
      core.extent().is_file(opened->identity, opened->described.generation,
                            (features_ & control_feature::measuring) != 0);
    }
    if (opened->limit > 0) {
      core.extent().grow_to(opened->limit);
      core.window().resize(opened->window);
    }
    if (opened->held) {
      core.when_released([through = releasing_, region = descriptor.region] {
        if (*through != nullptr) (*through)->tell(control_type::release, release_body{region});
      });
    }
  }
  remember(descriptor.region, core_access::core(made));
  return made;
}

void client_core::remember(std::uint64_t region,
                           const std::shared_ptr<remote_region_core>& opened) {
  const std::lock_guard guard(core_of(worker_).lock());
  if (opened_.size() >= sweep_at_) {
    std::erase_if(opened_, [](const auto& each) { return each.second.expired(); });
    sweep_at_ = std::max<std::size_t>(64, 2 * opened_.size());
  }
  opened_.emplace(region, opened);
}

void client_core::revoked(std::uint64_t region) {
  const auto [first, last] = opened_.equal_range(region);
  for (auto each = first; each != last; ++each) {
    if (const auto opened = each->second.lock()) opened->revoke();
  }
  opened_.erase(first, last);
}

std::error_code client_core::status() const noexcept {
  if (is_forked_child()) return errc::forked_child;
  const std::lock_guard guard(core_of(worker_).lock());
  return session_.over() ? session_.why() : core_of(*endpoint_).status();
}

client_statistics client_core::statistics() const noexcept {
  client_statistics made;
  made.opens = opens_.load(std::memory_order_relaxed);
  made.requests = requests_.load(std::memory_order_relaxed);
  made.failures = failures_.load(std::memory_order_relaxed);
  made.staging = core_of(worker_).staging();
  return made;
}

void client_core::close() noexcept {
  closed_ = true;
  if (is_forked_child()) return;
  {
    const std::lock_guard guard(core_of(worker_).lock());
    try {
      session_.leave();
    } catch (const std::bad_alloc&) {  // the peer learns it from the end of the connection
    }
  }
  std::error_code ignored;
  endpoint_->close(close_mode::flush, ignored);
}

void client_core::leave_at_once() noexcept {
  const std::shared_ptr<endpoint_core>& connection = core_access::core(*endpoint_);
  {
    const std::lock_guard guard(core_of(worker_).lock());
    if (connection.use_count() > 1 || connection->is_kept_by_requests()) return;
    try {
      session_.leave();
      connection->session().say_bye({});
    } catch (const std::bad_alloc&) {  // the peer learns it from the end of the connection
    }
  }
  std::error_code ignored;
  try {
    endpoint_->close(close_mode::abort, ignored);
  } catch (const std::bad_alloc&) {  // it is aborted: what was to be done next is not
  }
}

}  // namespace ucx::detail
