#include "client/feeding_thread.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <new>
#include <utility>

#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

constexpr std::size_t shortest_piece = std::size_t{64} << 10U;
constexpr std::size_t longest_piece = std::size_t{1} << 20U;
/// How soon a thread that waits for the network looks whether it is to stop.
constexpr std::chrono::milliseconds longest_look{20};

}  // namespace

feeding_thread::feeding_thread(opened_source source,
                               const experimental::read_fd_feed_options& options)
    : source_(std::move(source)),
      each_{options.timeout},
      piece_(std::clamp(options.window / 8, shortest_piece, longest_piece)),
      owner_(::getpid()) {
  memory_.resize(static_cast<std::size_t>(
      std::min<std::uint64_t>(options.window / piece_, source_.region.size() / piece_ + 1)));
  for (std::vector<std::byte>& each : memory_) {
    each.resize(piece_);
    idle_.push_back(&each);
  }
}

result<std::unique_ptr<feeding_thread>> feeding_thread::make(
    opened_source source, const experimental::read_fd_feed_options& options) {
  if (options.window < 2 * shortest_piece) {
    return failure{errc::invalid_argument, "feeding a descriptor with a window of less than " +
                                               std::to_string(2 * shortest_piece) + " bytes"};
  }
  std::unique_ptr<feeding_thread> made(new feeding_thread(std::move(source), options));
  if (!made->make_sockets()) {
    const int number = errno;
    return failure{number == EMFILE || number == ENFILE ? errc::too_many_files : errc::no_memory,
                   "making sockets to feed (" + std::generic_category().message(number) + ")"};
  }
  try {
    made->start();
  } catch (const std::system_error&) {
    return failure{errc::no_memory, "starting a thread to feed a descriptor"};
  }
  return made;
}

void feeding_thread::start() {
  thread_ = std::thread([this] {
    // Handlers of the program's run on threads of the program's.
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    run();
  });
}

feeding_thread::~feeding_thread() {
  if (!thread_.joinable()) return;
  stop();
  thread_.join();
}

bool feeding_thread::is_of_this_process() const noexcept { return owner_ == ::getpid(); }

void feeding_thread::leave_to_parent() noexcept {
  reader_ = file_descriptor();
  writer_ = owned_descriptor();
  stopping_ = owned_descriptor();
}

int feeding_thread::reader() noexcept {
  if (!is_of_this_process()) return reader_.get();  // no other thread is here to release the mutex
  const std::lock_guard guard(mutex_);
  return reader_.get();
}

file_descriptor feeding_thread::take_reader() noexcept {
  if (!is_of_this_process()) return std::move(reader_);
  const std::lock_guard guard(mutex_);
  return std::move(reader_);
}

/// The reading end sends a byte, which is taken when all was handed over. If this end is closed
/// before that, the system tells the reading end ECONNRESET, instead of an end. Returns false, with
/// errno, where there are no sockets.
bool feeding_thread::make_sockets() noexcept {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) return false;
  writer_ = owned_descriptor(pair[0]);
  reader_ = file_descriptor(pair[1]);
  stopping_ = owned_descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stopping_ || ::send(reader_.get(), "", 1, MSG_NOSIGNAL) != 1) return false;
  ::shutdown(reader_.get(), SHUT_WR);
  return true;
}

void feeding_thread::run() noexcept {
  try {
    feed_all();
    char taken = 0;
    ::recv(writer_.get(), &taken, 1, MSG_DONTWAIT);
    ::shutdown(writer_.get(), SHUT_WR);  // a child of fork() may have another descriptor of it
    end({}, {});
  } catch (const ucx::error& failed) {
    end(failed.code(), failed.what());
  } catch (const std::bad_alloc&) {
    end(errc::no_memory, "feeding a descriptor");
  }
}

void feeding_thread::feed_all() {
  const std::uint64_t size = source_.region.size();
  while (fed() < size) {
    start_reads();
    flight first = std::move(flights_.front());
    flights_.pop_front();
    if (!arrived(first)) throw ucx::error(errc::canceled, "feeding a descriptor, stopped");
    if (const std::error_code failed = hand_over(first.bytes)) {
      throw ucx::error(failed, "feeding a descriptor that nobody reads any more, or stopped");
    }
    idle_.push_back(first.memory);
  }
}

void feeding_thread::start_reads() {
  const std::uint64_t size = source_.region.size();
  while (!idle_.empty() && next_ < size) {
    std::vector<std::byte>* const memory = idle_.back();
    idle_.pop_back();
    const std::span<std::byte> bytes = std::span(*memory).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(piece_, size - next_)));
    flights_.push_back({source_.region.start_read_at(next_, bytes, each_), bytes, memory});
    next_ += bytes.size();
  }
}

/// Returns false where it is to stop before. Throws what the read failed with.
bool feeding_thread::arrived(flight& first) {
  while (!first.reading.wait_for(longest_look)) {
    if (stops_.load(std::memory_order_relaxed)) return false;
  }
  first.reading.wait();
  return !stops_.load(std::memory_order_relaxed);
}

std::error_code feeding_thread::hand_over(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent =
        ::send(writer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
      fed_.fetch_add(static_cast<std::uint64_t>(sent), std::memory_order_relaxed);
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return errc::canceled;
    // However long the reader takes; its end, and ours, are told.
    std::array<::pollfd, 2> events{::pollfd{.fd = writer_.get(), .events = POLLOUT, .revents = 0},
                                   ::pollfd{.fd = stopping_.get(), .events = POLLIN, .revents = 0}};
    ::poll(events.data(), events.size(), -1);
    if (events[1].revents != 0) return errc::canceled;
  }
  return {};
}

void feeding_thread::end(std::error_code why, std::string text) noexcept {
  flights_.clear();
  writer_ = owned_descriptor();
  const std::lock_guard guard(mutex_);
  error_ = why;
  error_text_ = std::move(text);
  has_ended_ = true;
  ended_.notify_all();
}

bool feeding_thread::wait_for(std::chrono::nanoseconds limit) {
  if (!is_of_this_process()) return true;  // nothing is fed here, and the mutex may be taken
  const auto now = std::chrono::steady_clock::now();
  constexpr auto never = std::chrono::steady_clock::time_point::max();
  std::unique_lock guard(mutex_);
  return ended_.wait_until(guard, limit < never - now ? now + limit : never,
                           [this] { return has_ended_; });
}

std::error_code feeding_thread::error() {
  if (!is_of_this_process()) return errc::forked_child;
  const std::lock_guard guard(mutex_);
  return error_;
}

std::string feeding_thread::error_text() {
  if (!is_of_this_process()) return "a feed of the parent's, in a child of fork()";
  const std::lock_guard guard(mutex_);
  return error_text_;
}

void feeding_thread::stop() noexcept {
  if (!is_of_this_process()) return;
  stops_.store(true, std::memory_order_relaxed);
  const std::uint64_t one = 1;
  if (::write(stopping_.get(), &one, sizeof one) < 0) return;  // it is full: it was told before
}

}  // namespace ucx::detail
