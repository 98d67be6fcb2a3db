#include "connection/port_guard.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "os/greeting_filter.hpp"
#include "os/open_descriptors.hpp"
#include "os/tcp_socket.hpp"

namespace ucx::detail {
namespace {

using std::chrono::milliseconds;

/// For so long, in seconds, the system itself keeps who says nothing: those take no descriptor.
constexpr int kept_by_system = 10;

/// Peers have sent so much by then at a port for data: UCX's magic number (8 bytes), a header (5),
/// and a request. A request is longer than its event, flags and address of IPv4 (4 + 1 + 16). UCX
/// sends them in one.
constexpr std::uint64_t least_of_data = 34;

/// Descriptors that are kept free: UCX lets in many at once before anybody can look.
std::size_t reserve_of(std::size_t limit) noexcept {
  return std::clamp<std::size_t>(limit / 8, std::min<std::size_t>(64, limit / 4), 1024);
}

/// So many may wait at a port of a process that has no plenty.
int most_waiting(std::size_t reserve) noexcept {
  return static_cast<int>(std::max<std::size_t>(reserve / 4, 2));
}

/// Where as many as these are left, those who knock are not counted one by one.
constexpr std::size_t plenty = 16'384;
constexpr int rest_amid_plenty = 20;  // milliseconds

/// In the place of when somebody greeted.
constexpr port_guard::clock::time_point told_already = port_guard::clock::time_point::max();

/// Of so many turned away at once; others may come as fast as they are.
constexpr int most_turned_away = 4096;

bool still_listens(const guarded_port& port) noexcept {
  return tcp_socket::is_listening(port.descriptor) &&
         tcp_socket::number(port.descriptor) == port.number;
}

/// Calls `take(descriptor)` for a port at which somebody listens still.
template <class Take>
void where_it_listens(const guarded_port& port, Take&& take) {
  if (port.greets) {
    tcp_socket::with_socket(port.descriptor, port.number, [&](int held) {
      if (tcp_socket::is_listening(held)) take(held);
    });
  } else if (still_listens(port)) {
    // UCX closes a port for data when it can let no peer in. If another descriptor kept it open,
    // UCX would hear of it once more, which ends the process (1.13.1).
    take(port.descriptor);
  }
}

bool is_at(const guarded_port& port, const socket_address& local) noexcept {
  if (port.address.port() != local.port() || port.address.is_v6() != local.is_v6()) return false;
  return port.address.is_wildcard() || port.address == local;
}

/// Takes what waits at a port and lets it go, as long as there is a descriptor for that.
void turn_away(int listening) noexcept {
  if ((::fcntl(listening, F_GETFL) & O_NONBLOCK) == 0) return;
  for (int i = 0; i < most_turned_away; ++i) {
    const owned_descriptor peer(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer) return;
  }
}

/// UCX has closed the port of this number, and knows the number still. UCX fails at the next peer
/// that gets it, and 1.13 then keeps a pointer to freed memory. Here the number is taken, for as
/// long as the process runs.
void hold(int number, int other) noexcept {
  const int held = ::fcntl(other, F_DUPFD_CLOEXEC, number);
  if (held >= 0 && held != number) ::close(held);
}

/// UCX notices, and closes its socket.
void send_away(int descriptor, std::uint64_t which) noexcept {
  tcp_socket::with_socket(descriptor, which, [](int held) { ::shutdown(held, SHUT_RDWR); });
}

}  // namespace

port_guard::port_guard(const std::vector<guarded_port>& ports, bounds within,
                       listeners told) noexcept
    : bounds_(within), told_(std::move(told)), owner_(::getpid()) {
  start(ports);
  if (thread_) return;
  for (const guarded_port& each : ports) {
    if (each.greets) where_it_listens(each, &greeting_filter::detach);
  }
}

void port_guard::start(const std::vector<guarded_port>& ports) noexcept {
  next_look_ = clock::now() + bounds_.period;
  knocks_ = owned_descriptor(::epoll_create1(EPOLL_CLOEXEC));
  stopping_ = owned_descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  spare_ = owned_descriptor(::eventfd(0, EFD_CLOEXEC));
  if (!knocks_ || !stopping_) return;
  ::epoll_event wanted = {};
  wanted.events = EPOLLIN;
  if (::epoll_ctl(knocks_.get(), EPOLL_CTL_ADD, stopping_.get(), &wanted) != 0) return;
  if (!add(ports)) return;
  // Handlers of the program's run on threads of the program's.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    thread_ = std::make_unique<std::thread>([this] { run(); });
  } catch (const std::exception&) {
    thread_.reset();  // no thread, or no memory
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

port_guard::~port_guard() {
  if (!thread_) return;
  if (owner_ != ::getpid()) {
    // The thread's data may lie in memory that the C library has taken back in a child.
    static_cast<void>(thread_.release());
    return;
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ::ssize_t written = ::write(stopping_.get(), &one, sizeof one);
  thread_->join();
  if (!doors_are_closed_) return;
  // The worker goes on; who comes to the others finds a listener that ends.
  for (const guarded_port& each : ports_) {
    if (!each.greets) where_it_listens(each, &greeting_filter::detach);
  }
}

bool port_guard::add(const std::vector<guarded_port>& further) noexcept try {
  const std::lock_guard guard(mutex_);
  ports_.reserve(ports_.size() + further.size());
  const std::size_t limit = count_descriptors().limit;
  for (const guarded_port& each : further) {
    ports_.push_back(each);
    where_it_listens(each, [&](int held) {
      if (limit < plenty) ::listen(held, most_waiting(reserve_of(limit)));
      tcp_socket::let_in_who_speaks(held, kept_by_system);
      if (doors_are_closed_) tcp_socket::refuse(held);
      watch(held);
    });
  }
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

/// The system forgets a socket that is closed, not by which descriptor it was told of.
void port_guard::watch(int listening) noexcept {
  ::epoll_event wanted = {};
  wanted.events = EPOLLIN | EPOLLET;
  wanted.data.u64 = 1;
  ::epoll_ctl(knocks_.get(), EPOLL_CTL_ADD, listening, &wanted);
}

void port_guard::run() noexcept {
  for (;;) {
    std::array<::epoll_event, 16> events = {};
    const int came = ::epoll_wait(knocks_.get(), events.data(), static_cast<int>(events.size()),
                                  until_next_look());
    const auto last = events.begin() + std::max(came, 0);
    const bool stops = std::any_of(events.begin(), last,
                                   [](const ::epoll_event& each) { return each.data.u64 == 0; });
    if (stops) return;
    try {
      look(came > 0);
    } catch (const std::bad_alloc&) {
      next_look_ = clock::now() + bounds_.settling;
    }
  }
}

int port_guard::until_next_look() const noexcept {
  const auto left = std::chrono::ceil<milliseconds>(next_look_ - clock::now());
  return static_cast<int>(std::max<milliseconds::rep>(left.count(), 0));
}

void port_guard::look(bool knocked) {
  if (look_at_descriptors()) rest();
  const std::lock_guard guard(mutex_);
  const clock::time_point now = clock::now();
  if (knocked) next_look_ = std::min(next_look_, now + bounds_.settling);
  if (!doors_are_closed_ && now < next_look_) return;
  look_at_ports();
  look_at_peers();
  plan_next_look(now, clock::now());
}

/// A process with many sockets is not looked through without end.
void port_guard::plan_next_look(clock::time_point began, clock::time_point ended) {
  const auto least = 50 * (ended - began);
  const auto at_soonest = [&](clock::duration wait) { return ended + std::max(wait, least); };
  const bool hurries = doors_are_closed_ || silent_.size() > bounds_.most_silent;
  next_look_ = at_soonest(hurries ? bounds_.settling : bounds_.period);
  for (const auto& [number, since] : silent_) {
    next_look_ = std::min(next_look_, std::max(since + bounds_.silence, at_soonest({})));
  }
  for (const auto& [number, since] : greeted_) {
    if (since == told_already) continue;
    next_look_ = std::min(next_look_, std::max(since + bounds_.silence, at_soonest({})));
  }
}

void port_guard::look_at_ports() {
  for (guarded_port& each : ports_) {
    if (each.is_lost || still_listens(each)) continue;
    hold(each.descriptor, stopping_.get());
    told_.lost(each);
    each.is_lost = true;
  }
}

/// Returns whether there are plenty of them.
bool port_guard::look_at_descriptors() {
  const descriptor_count count = count_descriptors();
  const std::size_t reserve = reserve_of(count.limit);
  const bool were_closed = doors_are_closed_;
  {
    const std::lock_guard guard(mutex_);
    if (count.left() < reserve) close_doors();
    if (count.left() == 0) turn_away_waiting();
    if (doors_are_closed_ && count.left() >= reserve + reserve / 2) open_doors();
  }
  if (!spare_) spare_ = owned_descriptor(::eventfd(0, EFD_CLOEXEC));
  if (doors_are_closed_ != were_closed) told_.changed(!doors_are_closed_, count.left());
  return count.left() > plenty;
}

void port_guard::rest() const noexcept {
  ::pollfd stopping{stopping_.get(), POLLIN, 0};
  ::poll(&stopping, 1, rest_amid_plenty);
}

/// Also those that are closed: another listener's guard has opened a port of both when it ended.
void port_guard::close_doors() noexcept {
  doors_are_closed_ = true;
  for (const guarded_port& each : ports_) {
    where_it_listens(each, &tcp_socket::refuse);
  }
}

void port_guard::open_doors() noexcept {
  doors_are_closed_ = false;
  for (const guarded_port& each : ports_) {
    where_it_listens(each, [&](int held) {
      // Where the one filter can not be had, no peer is to be dropped by the other.
      const bool filtered = each.greets && greeting_filter::attach(held);
      if (!filtered) greeting_filter::detach(held);
    });
  }
}

/// UCX would ask for them without end, and never get one.
void port_guard::turn_away_waiting() noexcept {
  spare_ = owned_descriptor();
  for (const guarded_port& each : ports_) {
    // By its own descriptor: another one would take that which has just become free.
    if (still_listens(each)) turn_away(each.descriptor);
  }
}

const guarded_port* port_guard::port_of(int descriptor) const noexcept {
  const socket_address local = tcp_socket::local(descriptor);
  if (local.empty()) return nullptr;
  const auto found = std::find_if(ports_.begin(), ports_.end(),
                                  [&](const guarded_port& each) { return is_at(each, local); });
  if (found == ports_.end() || tcp_socket::is_listening(descriptor)) return nullptr;
  return tcp_socket::was_connected(descriptor) ? &*found : nullptr;
}

void port_guard::look_at_peers() {
  const clock::time_point now = clock::now();
  const bool is_crowded = silent_.size() > bounds_.most_silent;
  std::unordered_map<std::uint64_t, clock::time_point> left;
  std::unordered_map<std::uint64_t, clock::time_point> greeted;
  each_descriptor([&](int number) {
    const guarded_port* const port = port_of(number);
    if (port == nullptr) return;
    const std::optional<std::uint64_t> received = tcp_socket::received(number);
    const std::uint64_t least = port->greets ? greeting_filter::least_greeting : least_of_data;
    const std::uint64_t which = tcp_socket::number(number);
    const auto let_through = [&] {
      tcp_socket::with_socket(number, which, &greeting_filter::detach);
    };
    if (which == 0) return greeting_filter::detach(number);  // the system does not tell
    if (!received) return let_through();
    if (*received >= least) {
      if (!port->greets) return;
      const auto known = greeted_.find(which);
      if (known == greeted_.end()) let_through();
      greeted.emplace(which, known == greeted_.end() ? now : known->second);
      return;
    }
    const auto known = silent_.find(which);
    const bool is_new = known == silent_.end();
    const clock::time_point since = is_new ? now : known->second;
    left.emplace(which, since);
    const bool hurries = (doors_are_closed_ || is_crowded) && !is_new;
    if (now - since < (hurries ? bounds_.settling : bounds_.silence)) return;
    send_away(number, which);
  });
  silent_ = std::move(left);
  tell_of_overdue(std::move(greeted));
}

void port_guard::tell_of_overdue(std::unordered_map<std::uint64_t, clock::time_point> greeted) {
  const clock::time_point now = clock::now();
  std::vector<std::uint64_t> overdue;
  for (const auto& [number, since] : greeted) {
    if (since == told_already || now - since < bounds_.silence) continue;
    overdue.push_back(number);
  }
  greeted_ = std::move(greeted);
  if (overdue.empty()) return;
  if (told_.overdue) told_.overdue(overdue);
  for (const std::uint64_t each : overdue) greeted_[each] = told_already;  // unless that has failed
}

}  // namespace ucx::detail
