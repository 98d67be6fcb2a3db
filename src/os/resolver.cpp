#include "os/resolver.hpp"

#include <netdb.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "base/deadline.hpp"
#include "base/one_per_process.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

constexpr int most_threads = 64;

/// The threads belong to the process, not to any object, because nothing ends a thread inside the
/// system's resolver. They are counted, as they may outlive their lookups.
struct thread_count {
  std::atomic<int> running{0};
};
constinit one_per_process<thread_count> threads;

/// One of them, from before it is asked for until it has ended, or could not be had.
class counted_thread {
 public:
  counted_thread() : counts_(&threads.get()) {
    if (counts_->running.fetch_add(1) < most_threads) return;
    std::exchange(counts_, nullptr)->running.fetch_sub(1);
  }
  counted_thread(counted_thread&& other) noexcept
      : counts_(std::exchange(other.counts_, nullptr)) {}
  counted_thread& operator=(counted_thread&&) = delete;
  ~counted_thread() {
    if (counts_ != nullptr) counts_->running.fetch_sub(1);
  }

  /// Returns whether there may be one more.
  explicit operator bool() const noexcept { return counts_ != nullptr; }

 private:
  thread_count* counts_;
};

/// Tells of a lack of memory by its result: an exception on the resolver's thread would end the
/// process.
resolution ask(lookup::resolver system, const std::string& host, std::uint16_t port) noexcept {
  try {
    return system(host, port);
  } catch (const std::bad_alloc&) {
    return {{}, make_error_code(errc::no_memory), {}};
  }
}

}  // namespace

struct lookup::state {
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::function<void()> on_done;  // empty once the lookup is gone
  bool done = false;
  resolution found;

  void finish(resolution result) noexcept {
    const std::lock_guard guard(mutex);
    found = std::move(result);
    done = true;
    changed.notify_all();
    if (on_done) on_done();
  }
};

lookup::lookup(std::string_view host, std::uint16_t port, std::function<void()> on_done,
               resolver system)
    : state_(std::make_shared<state>()) {
  state_->on_done = std::move(on_done);
  std::error_code not_numeric;
  const socket_address numeric(host, port, not_numeric);
  if (!not_numeric) {
    state_->finish({{numeric}, {}, {}});
    return;
  }
  if (host.empty() || host.find('\0') != std::string_view::npos) {
    state_->finish({{}, make_error_code(errc::host_not_found), "not a host name"});
    return;
  }
  counted_thread counted;
  if (!counted) {
    state_->finish({{},
                    make_error_code(errc::busy),
                    "as many earlier questions are unanswered as the library allows"});
    return;
  }
  try {
    std::thread([counted = std::move(counted), asked = state_, name = std::string(host), port,
                 system] {
      asked->finish(ask(system, name, port));
    }).detach();
  } catch (const std::system_error& failed) {
    state_->finish({{}, make_error_code(errc::busy), failed.what()});
  }
}

lookup::~lookup() {
  std::function<void()> unused;  // destroyed behind the lock
  const std::lock_guard guard(state_->mutex);
  std::swap(unused, state_->on_done);
}

bool lookup::done() const {
  const std::lock_guard guard(state_->mutex);
  return state_->done;
}

bool lookup::wait_until(std::chrono::steady_clock::time_point deadline) const {
  std::unique_lock guard(state_->mutex);
  return state_->changed.wait_until(guard, deadline, [this] { return state_->done; });
}

resolution lookup::take() {
  const std::lock_guard guard(state_->mutex);
  return std::move(state_->found);
}

resolution ask_resolver(const std::string& host, std::uint16_t port) {
  // One entry an address, not one for each kind of socket.
  ::addrinfo wanted = {};
  wanted.ai_socktype = SOCK_STREAM;
  ::addrinfo* first = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), nullptr, &wanted, &first);
  const int system_failure = errno;
  if (failure != 0) {
    const errc why = failure == EAI_MEMORY ? errc::no_memory : errc::host_not_found;
    return {{},
            make_error_code(why),
            failure == EAI_SYSTEM ? std::generic_category().message(system_failure)
                                  : ::gai_strerror(failure)};
  }
  const std::unique_ptr<::addrinfo, void (*)(::addrinfo*)> owner(first, ::freeaddrinfo);
  resolution found;
  for (const ::addrinfo* each = first; each != nullptr; each = each->ai_next) {
    std::error_code not_ip;
    const auto address = socket_address::from_native(each->ai_addr, each->ai_addrlen, not_ip);
    if (!not_ip) found.addresses.push_back(address.with_port(port));
  }
  if (found.addresses.empty()) {
    found.failure = errc::host_not_found;
    found.words = "it has no IP address";
  }
  return found;
}

result<std::vector<socket_address>> look_up(std::string_view host, std::uint16_t port,
                                            std::chrono::nanoseconds timeout) {
  const auto fail = [host](std::error_code why, const std::string& words) {
    return failure{why, std::string("looking up the host \"").append(host) + "\" (" + words + ")"};
  };
  lookup asked(host, port, {});
  if (!asked.wait_until(after(std::chrono::steady_clock::now(), timeout))) {
    return fail(errc::timed_out, "the resolver does not answer");
  }
  resolution found = asked.take();
  if (found.failure) return fail(found.failure, found.words);
  return std::move(found.addresses);
}

}  // namespace ucx::detail
