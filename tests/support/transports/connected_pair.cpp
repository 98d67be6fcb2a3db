#include "support/transports/connected_pair.hpp"

#include <cstdlib>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "support/transports/foreign_ucx.hpp"
#include "support/transports/network.hpp"
#include "ucx/access.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

worker_options with_mode(worker_options options, progress_mode mode) {
  options.progress = mode;
  return patient(std::move(options));
}

context make_context(const pair_options& options) {
  const context_options wanted = context_options_for(options.over);
  return options.adopted ? adopt_context(wanted) : context(wanted);
}

worker make_worker(const pair_options& options, const context& parent,
                   const worker_options& wanted) {
  return options.adopted ? adopt_worker(parent, wanted) : worker(parent, wanted);
}

bool is_unreal(std::error_code ec) {
  return ec == errc::not_supported || ec == errc::feature_disabled;
}

}  // namespace

std::string to_string(route over) {
  switch (over) {
    case route::tcp_by_address:
      return network_name() + "_by_address";
    case route::tcp_by_listener:
      return network_name() + "_by_listener";
    case route::shared_memory:
      return "shared_memory";
    case route::tcp_to_itself:
      return network_name() + "_to_itself";
    case route::loopback:
      return "loopback";
    case route::mapped:
      return "mapped";
    case route::borrowed:
      return "borrowed";
  }
  return "unknown";
}

std::string name_of(progress_mode mode) {
  switch (mode) {
    case progress_mode::automatic:
      return "automatic";
    case progress_mode::caller:
      return "caller";
    case progress_mode::polling_thread:
      return "polling";
    case progress_mode::sleeping_thread:
      return "sleeping";
    case progress_mode::external:
      return "external";
  }
  return "unknown";
}

bool goes_by_listener(route over) {
  const bool is_network = over == route::tcp_by_address || over == route::tcp_to_itself;
  return over == route::tcp_by_listener || (is_network && goes_over_sockets());
}

worker_address address_of(worker& of, route over) {
  return goes_by_listener(over) && goes_over_sockets() ? worker_address() : of.address();
}

context_options context_options_for(route over) {
  context_options options;
  // Else what is tested would be bypassed.
  options.share_memory = over == route::mapped || over == route::borrowed;
  switch (over) {
    case route::borrowed:
      options.transports = {"tcp", "cma"};
      options.devices = {"lo"};
      break;
    case route::mapped:
      options.transports = {"tcp"};
      options.devices = {"lo"};
      break;
    case route::tcp_by_address:
    case route::tcp_by_listener:
    case route::tcp_to_itself:
      options = over_network();
      options.share_memory = false;
      break;
    case route::shared_memory:
      options.transports = {"posix", "cma", "self"};
      options.features = feature::rma | feature::wakeup;
      break;
    case route::loopback:
      options.transports = {"self"};
      options.features = feature::rma | feature::am;
      break;
  }
  return options;
}

std::string to_string(const pair_options& options) {
  std::string text = to_string(options.over);
  const bool to_itself = options.over == route::tcp_to_itself || options.over == route::loopback;
  if (!to_itself) text += "_owner_" + name_of(options.owner);
  text += "_reader_" + name_of(options.reader);
  return options.adopted ? text + "_adopted" : text;
}

std::vector<pair_options> every_pair() {
  std::vector<pair_options> all;
  const auto readers = {progress_mode::caller, progress_mode::polling_thread,
                        progress_mode::sleeping_thread};
  for (const route over : {route::tcp_by_address, route::tcp_by_listener, route::shared_memory}) {
    for (const progress_mode owner :
         {progress_mode::polling_thread, progress_mode::sleeping_thread, progress_mode::external}) {
      for (const progress_mode reader : readers) all.push_back({over, owner, reader, {}, {}});
    }
    all.push_back({over, progress_mode::sleeping_thread, progress_mode::external, {}, {}});
  }
  for (const progress_mode reader : readers) {
    all.push_back({route::mapped, progress_mode::sleeping_thread, reader, {}, {}});
    all.push_back({route::borrowed, progress_mode::sleeping_thread, reader, {}, {}});
    all.push_back({route::tcp_to_itself, reader, reader, {}, {}});
  }
  // UCX's transport `self` has no events to sleep on.
  for (const progress_mode reader : {progress_mode::caller, progress_mode::polling_thread}) {
    all.push_back({route::loopback, reader, reader, {}, {}});
  }
  return all;
}

std::vector<pair_options> adopted_pairs() {
  std::vector<pair_options> all;
  for (const route over : {route::tcp_by_listener, route::tcp_by_address, route::shared_memory}) {
    const auto add = [&](progress_mode owner, progress_mode reader) {
      all.push_back({over, owner, reader, {}, {}, true});
    };
    if (over != route::tcp_by_address) {
      add(progress_mode::sleeping_thread, progress_mode::caller);
      add(progress_mode::polling_thread, progress_mode::sleeping_thread);
    }
    if (over != route::tcp_by_listener) {
      add(progress_mode::external, progress_mode::polling_thread);
      add(progress_mode::sleeping_thread, progress_mode::external);
    }
  }
  return all;
}

std::vector<pair_options> message_pairs(route over) {
  std::vector<pair_options> all;
  for (const progress_mode reader :
       {progress_mode::caller, progress_mode::polling_thread, progress_mode::sleeping_thread}) {
    all.push_back({over, progress_mode::external, reader, {}, {}, false, true});
  }
  return all;
}

connected_pair::connected_pair(const pair_options& chosen) : options(chosen) {
  owner_context.emplace(make_context(options));
  worker_options owners = with_mode(options.owner_defaults, options.owner);
  owner.emplace(make_worker(options, *owner_context, owners));
  // Asked for before somebody else drives the worker.
  const bool by_listener = goes_by_listener(options.over);
  const worker_address address = address_of(*owner, options.over);
  if (by_listener) {
    door.emplace(*owner, any_port_of_network());
  }
  if (!to_itself()) {
    if (options.owner == progress_mode::external) owner_loop.emplace(*owner);
    other_context.emplace(make_context(options));
    worker_options wanted = with_mode(options.reader_defaults, options.reader);
    const bool loops = options.reader == progress_mode::external;
    if (loops) wanted.thread_mode = thread_mode::multi;  // the loop drives beside the test
    other.emplace(make_worker(options, *other_context, wanted));
    if (loops) reader_loop.emplace(*other);
  }
  if (door) {
    connection.emplace(reader(), door->address());
  } else {
    connection.emplace(reader(), address);
  }
  connection->wait_connected();
  address_ = address;
}

bool connected_pair::to_itself() const noexcept {
  return options.over == route::tcp_to_itself || options.over == route::loopback;
}

endpoint connected_pair::connect(endpoint_options wanted) {
  if (door) return endpoint(reader(), door->address(), std::move(wanted));
  endpoint made(reader(), address_, std::move(wanted));
  made.wait_connected();
  return made;
}

memory_region connected_pair::allocate(std::size_t size, access granted) {
  if (options.over == route::borrowed) {
    memories.emplace_back(size);
    return memory_region(*owner_context, std::span(memories.back()), granted);
  }
  return memory_region::allocate(*owner_context, size, granted);
}

std::string connected_pair::why_not_forced() {
  if (std::getenv("UCXIO_TRANSFER_METHOD") == nullptr) return {};
  const memory_region probe = allocate(1);
  try {
    const remote_region tried(*connection, probe.descriptor());
  } catch (const error& failed) {
    if (!is_unreal(failed.code())) throw;
    return failed.what();
  }
  return {};
}

remote_region connected_pair::open(const memory_region& region) {
  std::error_code ec;
  const remote_region_options wanted =
      options.by_message ? answered_by_the_owner() : remote_region_options();
  remote_region made(*connection, region.descriptor(), wanted, ec);
  if (!ec) return made;
  if (std::getenv("UCXIO_TRANSFER_METHOD") == nullptr || !is_unreal(ec))
    throw error(ec, "opening a region");
  return remote_region(*connection, region.descriptor(),
                       {.transfer_method = transfer_method::message}, ec);
}

bool connected_pair::drive_until(const std::function<bool()>& done,
                                 std::chrono::nanoseconds limit) {
  const auto until = std::chrono::steady_clock::now() + patience(limit);
  const bool drives = options.reader == progress_mode::caller;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    if (!drives || !reader().progress()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

}  // namespace ucx::test
