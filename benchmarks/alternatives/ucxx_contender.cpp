// UCXX over UCX's TCP, or within one host, as compare.py drives it (see contender.py): calls of 1
// MiB, some in flight.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <ucxx/api.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::size_t mib = std::size_t{1} << 20U;
constexpr std::size_t matrix = 128 * mib;
constexpr int owner_core = 0;
constexpr int reader_core = 1;
constexpr std::size_t in_flight = 4;  // 2 and 16 were no faster

std::uint64_t word(std::uint64_t offset) { return offset * 0x9E3779B97F4A7C15U; }

void pin_to_core(int core) {
  ::cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) {
    std::fprintf(stderr, "not pinned to core %d: expect other figures\n", core);
  }
}

/// What the two processes tell each other beside UCX.
void tell(int to, const std::string& text) {
  const std::uint64_t size = text.size();
  if (::send(to, &size, sizeof size, MSG_NOSIGNAL) != sizeof size ||
      ::send(to, text.data(), size, MSG_NOSIGNAL) != static_cast<::ssize_t>(size)) {
    throw std::runtime_error("the other process has gone");
  }
}
std::string hear(int from) {
  std::uint64_t size = 0;
  if (::recv(from, &size, sizeof size, MSG_WAITALL) != sizeof size) {
    throw std::runtime_error("the other process has gone");
  }
  std::string text(size, '\0');
  if (::recv(from, text.data(), size, MSG_WAITALL) != static_cast<::ssize_t>(size)) {
    throw std::runtime_error("the other process has gone");
  }
  return text;
}

std::shared_ptr<ucxx::Context> make_context() {
  return ucxx::contextBuilder(UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP).build();
}

class owner {
 public:
  explicit owner(int talk) : talk_(talk) {
    for (std::uint64_t i = 0; i < read_.size(); ++i) read_[i] = word(i * sizeof(std::uint64_t));
    tell(talk_, std::string(ucxx::AddressBuilder(worker_).build()->getStringView()));
    for (std::vector<std::uint64_t>* each : {&read_, &written_}) {
      handles_.push_back(context_->memoryHandleBuilder(matrix).buffer(each->data()).build());
      tell(talk_, handles_.back()->remoteKeyBuilder().build()->serialize());
    }
  }
  /// Spins, as the reader does, and tells the first word of what was written when it is asked.
  [[noreturn]] void serve() {
    for (;;) {
      for (int i = 0; i < 1000; ++i) worker_->progress();
      char asked = 0;
      const ::ssize_t got = ::recv(talk_, &asked, 1, MSG_DONTWAIT);
      if (got == 0) std::_Exit(0);
      if (got == 1) tell(talk_, std::to_string(written_[0]));
    }
  }

 private:
  int talk_;
  std::shared_ptr<ucxx::Context> context_ = make_context();
  std::shared_ptr<ucxx::Worker> worker_ = context_->workerBuilder().build();
  std::vector<std::uint64_t> read_ = std::vector<std::uint64_t>(matrix / sizeof(std::uint64_t));
  std::vector<std::uint64_t> written_ = std::vector<std::uint64_t>(matrix / sizeof(std::uint64_t));
  std::vector<std::shared_ptr<ucxx::MemoryHandle>> handles_;
};

class reader {
 public:
  explicit reader(int talk) : talk_(talk), worker_(make_context()->workerBuilder().build()) {
    endpoint_ = worker_->endpointBuilder(ucxx::AddressBuilder(hear(talk)).build()).build();
    to_read_ = endpoint_->remoteKeyBuilder(hear(talk)).build();
    to_write_ = endpoint_->remoteKeyBuilder(hear(talk)).build();
  }

  double run(bool writes, double seconds) {
    const auto start = std::chrono::steady_clock::now();
    const auto passed = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    if (writes) stamp();
    std::uint64_t started = 0;
    do {
      if (calls_.size() == in_flight) finish(writes);
      start_call(writes, started++);
    } while (started % 8 != 0 || passed() < seconds);
    while (!calls_.empty()) finish(writes);
    if (writes) wait_for(*endpoint_->flushBuilder().build());
    const double rate = static_cast<double>(started * mib) / passed() / 1e9;
    if (writes) check_written();
    return rate;
  }

 private:
  struct call {
    std::shared_ptr<ucxx::Request> request;
    std::uint64_t offset = 0;
    std::size_t buffer = 0;
  };

  void wait_for(ucxx::Request& request) {
    while (!request.isCompleted()) worker_->progress();
    request.checkError();
  }
  void start_call(bool writes, std::uint64_t number) {
    const std::uint64_t offset = number * mib % matrix;
    const std::size_t buffer = number % in_flight;
    void* const here = buffers_[buffer].data();
    const auto& key = writes ? to_write_ : to_read_;
    const std::uint64_t there = key->getBaseAddress() + offset;
    calls_.push_back({writes ? endpoint_->memPutBuilder(here, mib, there, key->getHandle()).build()
                             : endpoint_->memGetBuilder(here, mib, there, key->getHandle()).build(),
                      offset, buffer});
  }
  void finish(bool writes) {
    const call first = calls_.front();
    calls_.pop_front();
    wait_for(*first.request);
    if (writes) return;
    const std::vector<std::uint64_t>& got = buffers_[first.buffer];
    const std::uint64_t last = mib - sizeof(std::uint64_t);
    if (got.front() != word(first.offset) || got.back() != word(first.offset + last)) {
      throw std::runtime_error("read other bytes than there are");
    }
  }
  void stamp() {
    ++stamp_;
    for (std::vector<std::uint64_t>& each : buffers_) each[0] = stamp_;
  }
  void check_written() {
    if (::send(talk_, "?", 1, MSG_NOSIGNAL) != 1 || hear(talk_) != std::to_string(stamp_)) {
      throw std::runtime_error("what was written is not there");
    }
  }

  int talk_;
  std::shared_ptr<ucxx::Worker> worker_;
  std::shared_ptr<ucxx::Endpoint> endpoint_;
  std::shared_ptr<ucxx::RemoteKey> to_read_;
  std::shared_ptr<ucxx::RemoteKey> to_write_;
  std::vector<std::vector<std::uint64_t>> buffers_ = std::vector<std::vector<std::uint64_t>>(
      in_flight, std::vector<std::uint64_t>(mib / sizeof(std::uint64_t)));
  std::deque<call> calls_;
  std::uint64_t stamp_ = 0;
};

void serve_passes() {
  // What made it fastest: the same as we use.
  for (const char* const each :
       {"UCX_NET_DEVICES=lo", "UCX_TCP_TX_SEG_SIZE=1m", "UCX_TCP_RX_SEG_SIZE=1m"}) {
    ::putenv(const_cast<char*>(each));
  }
  const char* const transports = std::getenv("ALTERNATIVES_TLS");
  ::setenv("UCX_TLS", transports == nullptr ? "tcp" : transports, 1);
  int talk[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, talk) != 0) throw std::runtime_error("no socket");
  const ::pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no second process");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(talk[0]);
    pin_to_core(owner_core);
    owner(talk[1]).serve();
  }
  ::close(talk[1]);
  pin_to_core(reader_core);
  reader reads(talk[0]);
  std::cout << "ready" << std::endl;
  std::string verb;
  for (double seconds = 0; std::cin >> verb >> seconds;) {
    std::cout << reads.run(verb == "write", seconds) << std::endl;
  }
}

}  // namespace

int main() {
  try {
    serve_passes();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    std::_Exit(1);
  }
  // Not by way of the library's own end, which need not be ready for it; the owner goes with us.
  std::_Exit(0);
}
