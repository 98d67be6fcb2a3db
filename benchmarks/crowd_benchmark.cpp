// One peer whose messages are read, among many that send and are not read, beside a lone one. Also
// prints what the unread messages take.
//   crowd_benchmark [--peers=N]
#include <benchmark/benchmark.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "comparison.hpp"
#include "echo_process.hpp"
#include "network.hpp"
#include "owner_process.hpp"
#include "process_memory.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/listener.hpp"
#include "ucx/message.hpp"
#include "ucx/request.hpp"
#include "ucx/worker.hpp"

namespace ucx::benchmarks {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::size_t size = 2000;
constexpr std::uint64_t unread = 7;
constexpr std::uint64_t read = 8;
constexpr std::size_t connecting_at_once = 50;
/// So many messages are on their way; the credit decides how many of them.
constexpr std::size_t sent_at_once = 4096;
/// The read peer may take so long to be as fast as a lone one.
constexpr auto settling = 100ms;
constexpr auto limit = 60s;

/// Sends without credit until nobody has any more, also a while later.
void flood(worker& driven, std::vector<endpoint>& peers) {
  const std::vector<std::byte> bytes(size);
  for (auto last = clock::now(); clock::now() - last < 300ms; driven.progress()) {
    for (endpoint& each : peers) {
      for (std::error_code ec; !ec;) {
        each.post_send(unread, bytes, 0, {.backpressure = backpressure::fail}, ec);
        if (!ec) last = clock::now();
      }
    }
  }
}

/// Connects `peers` that flood, and one more that sends without end.
void send_all(const socket_address& where, std::size_t peers, int tell) {
  const context parent(options_with_segments(""));
  worker driven(parent);
  std::vector<endpoint> all;
  all.reserve(peers);
  std::size_t standing = 0;
  while (all.size() < peers) {
    all.emplace_back(driven, where,
                     endpoint_options{.connect_timeout = limit, .wait = connect_wait::none});
    if (all.size() % connecting_at_once != 0 && all.size() < peers) continue;
    while (standing < all.size()) all[standing++].wait_connected();
  }
  flood(driven, all);
  endpoint one(driven, where, {.connect_timeout = limit});
  if (::write(tell, "\n", 1) != 1) return;
  const std::vector<std::byte> bytes(size);
  for (std::deque<request> sending;;) {
    sending.push_back(one.start_send(read, bytes, {.timeout = 1h}));
    if (sending.size() < sent_at_once) continue;
    sending.front().wait();
    sending.pop_front();
  }
}

/// A forked process that sends, and this process's worker that it sends to.
class crowd {
 public:
  /// REQUIRES: this process has not used UCX yet, and runs one thread.
  explicit crowd(std::size_t peers) {
    std::array<int, 2> orders = {};
    std::array<int, 2> words = {};
    if (::pipe(orders.data()) != 0 || ::pipe(words.data()) != 0)
      throw std::runtime_error("no pipe");
    child_ = ::fork();
    if (child_ < 0) throw std::runtime_error("no process for the senders");
    if (child_ == 0) {
      ::close(orders[1]);
      ::close(words[0]);
      try {
        become_owner();
        send_all(socket_address(line_of(orders[0])), peers, words[1]);
      } catch (const std::exception& failure) {
        std::fprintf(stderr, "senders: %s\n", failure.what());
      }
      ::_exit(1);
    }
    ::close(orders[0]);
    ::close(words[1]);
    orders_ = orders[1];
    words_ = words[0];
  }
  ~crowd() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::close(orders_);
    ::close(words_);
  }
  crowd(const crowd&) = delete;
  crowd& operator=(const crowd&) = delete;

  /// Has them connect, and send until there is no credit. Then reads from the one for a while.
  void start() {
    parent_ = std::make_unique<context>(options_with_segments(""));
    driven_ = std::make_unique<worker>(*parent_);
    door_ =
        std::make_unique<listener>(*driven_, socket_address(tested_network().owner_address + ":0"));
    const std::string line = to_string(door_->address()) + "\n";
    if (::write(orders_, line.data(), line.size()) < 0) throw std::runtime_error("no senders");
    drive_until_told();
    std::optional<message> first;
    while (!(first = driven_->take(read))) driven_->progress();
    read_.emplace(first->peer());
    for (const auto until = clock::now() + settling; clock::now() < until;) receive();
  }
  void receive() { read_->receive(read, into_); }
  void receive_of_anybody() { driven_->receive(read, into_); }

 private:
  static std::string line_of(int from) {
    std::string line;
    for (char c = 0; ::read(from, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  void drive_until_told() {
    ::pollfd told = {words_, POLLIN, 0};
    while (::poll(&told, 1, 0) == 0) driven_->progress();
  }

  ::pid_t child_ = -1;
  int orders_ = -1;
  int words_ = -1;
  std::unique_ptr<context> parent_;
  std::unique_ptr<worker> driven_;
  std::unique_ptr<listener> door_;
  std::optional<endpoint> read_;
  std::vector<std::byte> into_ = std::vector<std::byte>(size);
};

std::size_t peers_of(int& argc, char** argv) {
  constexpr std::string_view option = "--peers=";
  std::size_t peers = 1000;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view each = argv[i];
    if (each.starts_with(option)) {
      peers = std::stoul(std::string(each.substr(option.size())));
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  return peers;
}

}  // namespace
}  // namespace ucx::benchmarks

int main(int argc, char** argv) {
  using namespace ucx::benchmarks;
  const std::size_t peers = peers_of(argc, argv);
  ::rlimit files = {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  crowd many(peers);
  crowd alone(0);
  pin_to_core(reader_core);
  return run_comparisons(argc, argv, [&] {
    alone.start();
    const double before = resident_kilobytes_of(::getpid());
    many.start();
    std::fprintf(stderr, "%zu connections and their unread messages take %.0f MiB\n", peers,
                 (resident_kilobytes_of(::getpid()) - before) / 1024);
    register_comparison({.name = "crowd/one is read",
                         .ours = {"in a crowd", [&] { return repeat([&] { many.receive(); }); }},
                         .others = {{"alone", [&] { return repeat([&] { alone.receive(); }); }}},
                         .target = 0.9,
                         .scale = static_cast<double>(size),
                         .unit = "B"});
    register_comparison(
        {.name = "crowd/one is read by its tag",
         .ours = {"in a crowd", [&] { return repeat([&] { many.receive_of_anybody(); }); }},
         .others = {{"alone", [&] { return repeat([&] { alone.receive_of_anybody(); }); }}},
         .target = 0.9,
         .scale = static_cast<double>(size),
         .unit = "B"});
  });
}
