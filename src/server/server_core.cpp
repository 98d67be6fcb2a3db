#include "server/server_core.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "base/error_text.hpp"
#include "base/if_there_is_memory.hpp"
#include "base/name.hpp"
#include "base/store_path.hpp"
#include "connection/client_ledger.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/listener_core.hpp"
#include "file/file_facts.hpp"
#include "os/socket_beside.hpp"
#include "region/exposed/exposed_memory.hpp"
#include "region/exposed/file_region.hpp"
#include "server/audit_file.hpp"
#include "server/other_family.hpp"
#include "server/port_failures.hpp"
#include "server/published_name.hpp"
#include "server/server_place.hpp"
#include "store/memory_directory.hpp"
#include "store/store_core.hpp"
#include "ucx/error.hpp"
#include "ucx/url.hpp"
#include "worker/await_rounds.hpp"
#include "worker/context_core.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Ports that are tried, where the system chooses one and another process may have it in the other
/// family.
constexpr int most_ports = 64;

void sum_up(staging_statistics& into, const staging_statistics& each) noexcept {
  into.copies += each.copies;
  into.bytes += each.bytes;
  into.unpinned_bytes += each.unpinned_bytes;
  into.memory += each.memory;
  into.pinned_memory += each.pinned_memory;
  into.direct_bytes += each.direct_bytes;
  into.direct_fallbacks += each.direct_fallbacks;
}

/// A peer of UCX's reaches the process without a question.
void warn_of_rules(const context_core& parent) noexcept {
  if (!parent.is_of_ucx()) return;
  parent.log().write(log_level::warning,
                     "rules bind no hostile peer over UCX, whose own messages read and write the "
                     "whole process; other transports have no such messages");
}

void describe(entry& full, const exposed_region& region) {
  full.kind = region.kind();
  full.device = region.memory().device;
  full.generation = region.generation();
}

}  // namespace

server_core::server_core(context parent, const server_options& options,
                         std::unique_ptr<other_family> other)
    : context_(std::move(parent)), options_(options), other_(std::move(other)) {
  if (options_.worker.progress == progress_mode::automatic) {
    options_.worker.progress = progress_mode::sleeping_thread;
  }
  options_.on_failure = port_failures::in_order(std::move(options_.on_failure));
  // The thread of one worker may hear what concerns connections of another.
  const bool is_alone = options_.workers <= 1 && !other_;
  if (!is_alone && options_.worker.thread_mode == thread_mode::automatic) {
    options_.worker.thread_mode = thread_mode::multi;
  }
}

result<std::shared_ptr<server_core>> server_core::make(const server_options& options) {
  const auto place = server_place::make(options);
  if (!place) return place.why();
  auto parent = place->make_context();
  if (!parent) return parent.why();
  std::unique_ptr<other_family> other;
  if (place->has_both_families()) {
    auto beside = other_family::make(*place, *parent, options.worker);
    if (!beside) return beside.why();
    other = *std::move(beside);
  }
  auto made = make_at(place->local, *std::move(parent), options, std::move(other));
  if (made) (*made)->addresses_.set_local(place->is_local());
  return made;
}

result<std::shared_ptr<server_core>> server_core::make(context parent,
                                                       const server_options& options) {
  const auto local = server_place::address_of(options.bind);
  if (!local) return local.why();
  return make_at(*local, std::move(parent), options, nullptr);
}

result<std::shared_ptr<server_core>> server_core::make_at(const socket_address& local,
                                                          context parent,
                                                          const server_options& options,
                                                          std::unique_ptr<other_family> other) {
  if (options.workers == 0 || options.workers > server_options::max_workers) {
    return failure{errc::invalid_argument, "serving with " + std::to_string(options.workers) +
                                               " workers, which may be 1 to " +
                                               std::to_string(server_options::max_workers)};
  }
  session_policy policy;
  policy.ledger = std::make_shared<client_ledger>(options.limits, core_access::core(parent)->log());
  if (options.rules) {
    policy.rules = core_access::lines(*options.rules);
    warn_of_rules(*core_access::core(parent));
  }
  if (!options.audit_file.empty()) {
    auto audit = audit_file::make(options.audit_file, core_access::core(parent)->log());
    if (!audit) return audit.why();
    policy.audit = *std::move(audit);
  }
  std::shared_ptr<server_core> made(new server_core(std::move(parent), options, std::move(other)));
  try {
    made->open(local, std::move(policy));
  } catch (const error& thrown) {
    return failure_of(thrown);
  }
  return made;
}

/// Throws what making workers and a listener does.
void server_core::open(const socket_address& local, session_policy policy) {
  worker_.emplace(context_, options_.worker);
  {
    worker_core& core = *core_access::core(*worker_);
    const std::lock_guard guard(core.lock());
    watcher_.emplace([weak = weak_from_this()](disk_queue::answer answer) {
      const std::shared_ptr<server_core> to = weak.lock();
      if (to) core_access::core(*to->worker_)->post_work(std::move(answer));
    });
    hasher_.emplace([weak = weak_from_this()](disk_queue::answer& answer) {
      const std::shared_ptr<server_core> to = weak.lock();
      if (to) core_access::core(*to->worker_)->post_work([answer] { answer(); });
    });
    sessions_ = std::make_shared<server_sessions>(core, catalogue_, *watcher_, *hasher_,
                                                  options_.max_clients, closed_, std::move(policy));
    core.set_control_server(sessions_.get());
  }
  open_further();
  if (local.empty()) return;
  other_ ? listen_in_both_families(local) : listen(local);
  const context_core& parent = *core_access::core(context_);
  const socket_address& first = listeners_.front().address();
  addresses_.listens_at(other_ ? other_->told(first) : first, parent.is_of_ucx(),
                        parent.is_by_tls());
  if (parent.has_unix_beside() && local.is_loopback()) listen_beside();
}

void server_core::listen(const socket_address& local) {
  listener_options options;
  if (options_.on_failure) options.on_failure = options_.on_failure;
  const listener& made = listeners_.emplace_back(*worker_, local, std::move(options));
  std::vector<std::weak_ptr<worker_core>> others;
  for (ucx::worker& each : further_) others.push_back(core_access::core(each));
  listening_.push_back(core_access::core(made));
  listening_.back()->spread_over(std::move(others));
}

/// IPv4 comes last: its clients may be with further workers, which keep its listener.
void server_core::listen_in_both_families(const socket_address& local) {
  other_->set_control_server(sessions_.get());
  for (int left = most_ports;; --left) {
    try {
      return listen(local.with_port(other_->listen(local.port(), options_.on_failure)));
    } catch (const error& failed) {
      if (local.port() != 0 || failed.code() != errc::address_in_use || left == 0) throw;
    }
  }
}

/// Without a Unix socket, clients of this user take TLS, as others do.
void server_core::listen_beside() {
  remove_stale_sockets_beside();
  const auto place = socket_beside(listeners_.front().address());
  std::string why = place ? "" : place.why().text;
  try {
    if (place) return listen(socket_address("unix:" + *place));
  } catch (const error& failed) {
    why = failed.what();
  }
  core_access::core(context_)->log().write(log_level::warning,
                                           "there is no Unix socket beside the port: " + why);
}

/// Makes the other workers; only their own threads drive them.
void server_core::open_further() {
  worker_options each = options_.worker;
  each.progress = progress_mode::sleeping_thread;
  further_.reserve(options_.workers - 1);
  while (further_.size() + 1 < options_.workers) {
    worker_core& core = *core_access::core(further_.emplace_back(context_, each));
    const std::lock_guard guard(core.lock());
    core.set_control_server(sessions_.get());
  }
}

ucx::worker& server_core::worker(std::size_t number) noexcept {
  if (number == 0) return *worker_;
  return number > further_.size() ? other_->worker() : further_[number - 1];
}

const std::shared_ptr<worker_core>& server_core::home() const noexcept {
  return core_access::core(*worker_);
}

server_core::~server_core() {
  close();
  for (ucx::worker& each : further_) {
    worker_core& core = *core_access::core(each);
    const std::lock_guard guard(core.lock());
    core.set_control_server(nullptr);
  }
  if (other_) other_->set_control_server(nullptr);
  if (!worker_ || !core_access::core(*worker_)) return;
  worker_core& core = *core_access::core(*worker_);
  const std::lock_guard guard(core.lock());
  core.set_control_server(nullptr);
  if (sessions_) sessions_->end();
}

template <class Make>
result<std::shared_ptr<published_name>> server_core::add(std::string_view name, entry described,
                                                         Make&& make_region) {
  const std::string_view complaint = complaint_about_name(name);
  if (!complaint.empty()) {
    return failure{errc::bad_name,
                   "publishing a name that can not be one: " + std::string(complaint)};
  }
  std::string doing = "publishing \"" + std::string(name) + "\"";
  if (is_closed()) return failure{errc::closed, std::move(doing)};
  described.name = std::string(name);
  result<std::shared_ptr<published_name>> made = failure{errc::no_memory, doing};
  if (!catalogue_.reserve(described.name)) return failure{errc::already_exists, std::move(doing)};
  try {
    made = make_region(std::move(described), doing);
  } catch (const std::bad_alloc&) {  // `made` says so
  }
  if (!made) {
    catalogue_.give_up(std::string(name));
    return made;
  }
  catalogue_.fill(*made);
  // close() may have emptied the catalogue meanwhile.
  if (is_closed()) {
    (*made)->close();
    return failure{errc::closed, std::move(doing)};
  }
  return made;
}

result<std::shared_ptr<published_name>> server_core::publish(
    std::string_view name, std::span<std::byte> bytes, access granted,
    const std::optional<memory_place>& expected) {
  entry described;
  described.size = bytes.size();
  described.granted = granted;
  using made = result<std::shared_ptr<published_name>>;
  return add(name, described, [&](entry full, const std::string& doing) -> made {
    if (bytes.data() == nullptr && !bytes.empty()) return failure{errc::invalid_argument, doing};
    const auto exposed = expose_memory(core_access::core(context_), bytes, granted, expected);
    if (!exposed)
      return failure{exposed.why().code, doing + ", " + exposed.why().text,
                     exposed.why().ucx_status};
    const std::shared_ptr<exposed_region>& region = *exposed;
    describe(full, *region);
    return std::make_shared<published_name>(shared_from_this(), std::move(full), region, bytes);
  });
}

result<std::shared_ptr<published_name>> server_core::allocate(std::string_view name,
                                                              std::size_t size, access granted,
                                                              const memory_place& place) {
  entry described;
  described.size = size;
  described.granted = granted;
  using made = result<std::shared_ptr<published_name>>;
  return add(name, described, [&](entry full, const std::string& doing) -> made {
    const auto allocated = allocate_memory(core_access::core(context_), size, granted, place);
    if (!allocated)
      return failure{allocated.why().code, doing + ", " + allocated.why().text,
                     allocated.why().ucx_status};
    const std::shared_ptr<exposed_region>& region = *allocated;
    describe(full, *region);
    return std::make_shared<published_name>(shared_from_this(), std::move(full), region,
                                            region->where());
  });
}

result<std::shared_ptr<published_name>> server_core::publish_file(std::string_view name,
                                                                  const std::filesystem::path& file,
                                                                  access granted) {
  entry described;
  described.type = entry_type::file;
  described.granted = granted;
  using made = result<std::shared_ptr<published_name>>;
  return add(name, described, [&](entry full, const std::string& doing) -> made {
    if (includes(granted, access::write)) {
      return failure{errc::not_supported, doing + ": files are published for reading only"};
    }
    const auto exposed = file_region::make(core_access::core(context_), file);
    if (!exposed) return exposed.why();
    const std::shared_ptr<file_region>& region = *exposed;
    describe(full, *region);
    full.size = region->size();
    if (const auto facts = known_facts(region->source()->descriptor())) tell(full, *facts);
    return std::make_shared<published_name>(shared_from_this(), std::move(full), region,
                                            std::span<std::byte>());
  });
}

result<void> server_core::check_store(const store_options& options,
                                      const std::string& doing) const {
  const std::string_view complaint =
      options.prefix.empty() ? std::string_view() : complaint_about_path(options.prefix);
  if (!complaint.empty()) {
    return failure{errc::bad_name,
                   doing + " under a prefix that can not be one: " + std::string(complaint)};
  }
  if (is_closed()) return failure{errc::closed, doing};
  const std::size_t least = core_access::core(context_)->write_piece();
  if (options.write_window < least && options.writable) {
    return failure{errc::invalid_argument, doing + ": write_window is less than one message of " +
                                               std::to_string(least) + " bytes"};
  }
  return {};
}

result<std::shared_ptr<store_core>> server_core::add_store(
    const std::filesystem::path& directory, const store_options& options,
    std::unique_ptr<memory_directory> memory) {
  auto made = store_core::make(shared_from_this(), core_access::core(context_), directory, options);
  if (!made) return made;
  (*made)->keep(std::move(memory));
  const std::string doing = "opening the directory \"" + directory.string() + "\"";
  if (!catalogue_.add_store(*made)) {
    return failure{errc::already_exists, doing + " as \"" + options.prefix + "\""};
  }
  if (!is_closed()) return made;
  (*made)->close();  // close() may have emptied the catalogue meanwhile
  return failure{errc::closed, doing};
}

result<std::shared_ptr<store_core>> server_core::publish_store(
    const std::filesystem::path& directory, const store_options& options) {
  const auto fit = check_store(options, "publishing the directory \"" + directory.string() + "\"");
  if (!fit) return fit.why();
  return add_store(directory, options, nullptr);
}

result<std::shared_ptr<store_core>> server_core::allocate_store(
    const store_options& options, const std::filesystem::path& within) {
  store_options chosen = options;
  chosen.writable = true;  // else it stays empty
  const std::string doing = "making a store in memory";
  if (const auto fit = check_store(chosen, doing); !fit) return fit.why();
  if (options.quota == store_options().quota) {
    return failure{errc::invalid_argument, doing + ": without a quota it could take all there is"};
  }
  auto memory = memory_directory::make(within, options.quota);
  if (!memory) return memory.why();
  const std::filesystem::path directory = (*memory)->path();
  return add_store(directory, chosen, *std::move(memory));
}

server_address server_core::address() const {
  server_address made;
  made.socket = addresses_.socket();
  // Over sockets a worker has none.
  if (worker_->parent().native_handle() != nullptr) made.worker = worker_->address();
  return made;
}

result<void> server_core::publish_address(const std::filesystem::path& file) {
  if (!is_closed() && !core_access::core(context_)->is_of_ucx()) {
    return failure{
        errc::not_supported,
        "writing the address file " + file.string() +
            ": a server without UCX has no worker address, and is reached by its URL. "
            "For one with UCX name the transport: context.transports = {\"ucx\"} (--ucx)"};
  }
  std::error_code ec;
  const worker_address own = worker_->address(ec);
  if (ec) return failure{ec, "asking for the server's worker address"};
  return addresses_.publish(file, own);
}

std::string server_core::url(std::string_view name) const {
  return is_closed() ? std::string() : addresses_.url(name);
}

server_statistics server_core::statistics() const {
  server_statistics made;
  made.names = catalogue_.size();
  sum_up(made.staging, worker_->staging());
  for (const ucx::worker& each : further_) sum_up(made.staging, each.staging());
  if (other_) sum_up(made.staging, other_->worker().staging());
  const std::lock_guard guard(core_access::core(*worker_)->lock());
  const session_counters& counted = sessions_->counters();
  made.clients = counted.greeted;
  made.clients_served = counted.served;
  made.opens = counted.opens;
  made.refusals = counted.refusals;
  return made;
}

void server_core::set_rules(std::shared_ptr<const rule_list> rules) {
  if (rules) warn_of_rules(*core_access::core(context_));
  const std::lock_guard guard(core_access::core(*worker_)->lock());
  sessions_->set_rules(std::move(rules));
}

void server_core::withdraw(const published_name& gone) noexcept {
  catalogue_.remove(gone);
  tell_withdrawn(gone.region(), if_there_is_memory([&] { return gone.described().name; }));
}

void server_core::tell_withdrawn(std::uint64_t region, std::string name) noexcept {
  if (is_closed()) return;  // the clients were told that the server leaves
  sessions_->tell_withdrawn(region, std::move(name));
}

void server_core::close() noexcept {
  const bool first = !closed_.exchange(true, std::memory_order_acq_rel);
  addresses_.close();
  if (!worker_ || !core_access::core(*worker_)) return;
  worker_core& core = *core_access::core(*worker_);
  if (first) {
    for (listener& each : listeners_) each.close();
    if (other_) other_->close();
    {
      const std::lock_guard guard(core.lock());
      if (sessions_) sessions_->tell_leaving();
    }
    // After a round of each further worker the farewells are on their way, before connections end.
    std::array<worker_core*, server_options::max_workers> others = {};
    std::transform(further_.begin(), further_.end(), others.begin(),
                   [](ucx::worker& each) { return core_access::core(each).get(); });
    std::size_t count = further_.size();
    if (other_) others[count++] = core_access::core(other_->worker()).get();
    const bool all_have_passed = await_rounds(std::span(others).first(count));
    // Else it goes when those are gone. Without further workers nothing else has it.
    for (const auto& each : listening_) {
      if (all_have_passed || further_.empty()) each->stop();
    }
    if (other_) other_->stop();
  }
  // Names share one deadline: however many clients have stopped, each is waited for only once.
  const clock::time_point until = after(core.api().now(), core.options().heartbeat_timeout);
  for (auto each = catalogue_.next(nullptr); each; each = catalogue_.next(each.get())) {
    each->close(until);
  }
  // And stores one for their disks: each has all of it, and they wait together.
  std::vector<std::shared_ptr<store_core>> closing;
  for (auto each = catalogue_.next_store(nullptr); each; each = catalogue_.next_store(each.get())) {
    if (!each->begin_close(until)) continue;
    try {
      closing.push_back(each);
    } catch (const std::bad_alloc&) {  // alone, then
      each->end_close(std::chrono::steady_clock::now() + disk_thread::longest_farewell);
    }
  }
  const auto farewell = std::chrono::steady_clock::now() + disk_thread::longest_farewell;
  for (const std::shared_ptr<store_core>& each : closing) each->end_close(farewell);
  watcher_->stop(farewell);
  hasher_->stop(farewell);
}

}  // namespace ucx::detail
