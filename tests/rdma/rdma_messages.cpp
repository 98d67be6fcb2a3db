// Messages between two machines with RMA hardware: tests/run-rdma.sh. With public names only, as a
// user.
//   ucxio-rdma-messages receive HOST:PORT    takes messages until it is killed
//   ucxio-rdma-messages send HOST:PORT       sends long ones, and counts what went over the wire
//   ucxio-rdma-messages measure HOST:PORT    as `send`, of several sizes, with and without RMA
//   ucxio-rdma-messages forget DEVICE        exposes memory, and looks for its registration
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <ucx/connection_report.hpp>
#include <ucx/context.hpp>
#include <ucx/endpoint.hpp>
#include <ucx/listener.hpp>
#include <ucx/memory_region.hpp>
#include <ucx/message.hpp>
#include <ucx/version.hpp>
#include <ucx/worker.hpp>

namespace {

constexpr std::size_t longest = std::size_t{16} << 20U;
constexpr std::size_t least_fetched = std::size_t{1} << 20U;  // shorter ones go in pieces
constexpr std::uint64_t checked_tag = 6;
constexpr std::uint64_t plain_tag = 7;
constexpr std::uint64_t usage_tag = 8;
constexpr std::uint64_t answer_tag = 9;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("not so: " + what);
}

std::byte pattern(std::size_t place) { return static_cast<std::byte>(place * 31 + place / 256); }

/// The processor may be emulated, on a busy machine.
ucx::worker_options patient() {
  ucx::worker_options options;
  options.connect_timeout = std::chrono::seconds(30);
  options.heartbeat_timeout = std::chrono::seconds(30);
  return options;
}

/// The processor's time, in microseconds, and what the device has counted.
struct usage {
  std::int64_t user = 0;
  std::int64_t system = 0;
  std::int64_t wrong = 0;  // messages with other bytes
  std::int64_t packets = 0;
  std::int64_t sends = 0;  // work requests that carry bytes of their own
};

std::int64_t counter(const char* name) {
  std::int64_t value = 0;
  std::ifstream(std::string("/sys/class/infiniband/rxe0/ports/1/hw_counters/") + name) >> value;
  return value;
}

usage usage_now() {
  ::rusage used = {};
  ::getrusage(RUSAGE_SELF, &used);
  const auto micro = [](const ::timeval& time) {
    return std::int64_t{time.tv_sec} * 1'000'000 + time.tv_usec;
  };
  return {micro(used.ru_utime), micro(used.ru_stime), 0, counter("sent_pkts"),
          counter("rdma_sends")};
}

usage difference(const usage& after, const usage& before) {
  return {after.user - before.user, after.system - before.system, after.wrong - before.wrong,
          after.packets - before.packets, after.sends - before.sends};
}

void receive(const std::string& bind) {
  const ucx::context context;
  ucx::worker_options options = patient();
  options.operation_timeout = std::chrono::hours(1);  // nothing may come for long
  ucx::worker worker(context, options);
  std::vector<ucx::endpoint> peers;
  const ucx::listener door(worker, ucx::socket_address(bind), [&](ucx::connection_request knocks) {
    peers.emplace_back(worker, std::move(knocks));
  });
  std::cout << "receives" << std::endl;
  std::vector<std::byte> into(longest);
  std::int64_t wrong = 0;
  for (;;) {
    const ucx::message_info came = worker.receive(ucx::tag_match::any(), into);
    if (came.tag == checked_tag) {
      bool is_right = true;
      for (std::size_t i = 0; i < came.length; ++i) is_right = is_right && into[i] == pattern(i);
      if (!is_right) ++wrong;
    }
    if (came.tag != usage_tag) continue;
    usage now = usage_now();
    now.wrong = wrong;
    peers.back().send(answer_tag, std::as_bytes(std::span(&now, 1)));
  }
}

class sender {
 public:
  sender(const std::string& to, ucx::feature features)
      : context_({.features = features}),
        worker_(context_, patient()),
        peer_(worker_, ucx::socket_address(to)) {
    peer_.wait_connected();
    for (std::size_t i = 0; i < longest; ++i) bytes_[i] = pattern(i);
  }

  ucx::connection_report report() const { return peer_.report(); }
  void send(std::uint64_t tag, std::size_t size) {
    peer_.send(tag, std::span(bytes_).first(size), {.until = ucx::send_until::matched});
  }
  usage theirs() {
    usage told;
    ucx::request answer =
        peer_.start_receive(answer_tag, std::as_writable_bytes(std::span(&told, 1)));
    peer_.send(usage_tag, {});
    answer.wait();
    return told;
  }

 private:
  ucx::context context_;
  ucx::worker worker_;
  ucx::endpoint peer_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(longest);
};

/// UCX 1.16 to 1.18 have the sender's processor answer a GET (docs/how-to/rdma.md).
bool gets_are_emulated() {
  const ucx::version_number used = ucx::ucx_version();
  return !(used < ucx::version_number{1, 16}) && used < ucx::version_number{1, 19};
}

constexpr ucx::feature with_rma = ucx::feature::rma | ucx::feature::am | ucx::feature::wakeup;
constexpr ucx::feature without_rma = ucx::feature::am | ucx::feature::wakeup;

void send(const std::string& to) {
  for (const bool fetches : {true, false}) {
    sender from(to, fetches ? with_rma : without_rma);
    const ucx::transfer_method expected =
        fetches ? ucx::transfer_method::rma : ucx::transfer_method::message;
    require(from.report().long_messages == expected, "the report says how long messages go");
    const usage before = usage_now();
    const usage theirs_before = from.theirs();
    from.send(checked_tag, longest);
    from.send(checked_tag, longest - 1);
    const usage spent = difference(usage_now(), before);
    const usage theirs = difference(from.theirs(), theirs_before);
    std::cout << (fetches ? "by RMA: " : "in pieces: ") << spent.sends << " sends here, "
              << spent.packets << " packets from here, " << theirs.packets << " from there\n";
    require(theirs.wrong == 0, "the bytes are right");
    const bool is_read = fetches && !gets_are_emulated();
    require(is_read == (spent.sends < 100), "the payload is sent in pieces where it is not read");
  }
}

void measure(const std::string& to) {
  for (const bool fetches : {true, false}) {
    sender from(to, fetches ? with_rma : without_rma);
    for (const std::size_t size : {std::size_t{300} << 10U, std::size_t{512} << 10U,
                                   std::size_t{1} << 20U, std::size_t{4} << 20U, longest}) {
      const auto count = static_cast<std::int64_t>(longest / size);
      from.send(plain_tag, size);
      const usage before = usage_now();
      const usage theirs_before = from.theirs();
      const auto start = std::chrono::steady_clock::now();
      for (std::int64_t i = 0; i < count; ++i) from.send(plain_tag, size);
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - start;
      const usage spent = difference(usage_now(), before);
      const usage theirs = difference(from.theirs(), theirs_before);
      std::printf(
          "measured: %s %8zu bytes: sender user %7lld us system %7lld us, receiver user %7lld us "
          "system "
          "%7lld "
          "us, packets %lld and %lld, sends %lld, %.1f ms each\n",
          fetches ? "rma   " : "pieces", size, static_cast<long long>(spent.user / count),
          static_cast<long long>(spent.system / count), static_cast<long long>(theirs.user / count),
          static_cast<long long>(theirs.system / count),
          static_cast<long long>(spent.packets / count),
          static_cast<long long>(theirs.packets / count),
          static_cast<long long>(spent.sends / count), took.count() / static_cast<double>(count));
      std::fflush(stdout);
      const bool is_fetched = fetches && size >= least_fetched && !gets_are_emulated();
      require(is_fetched == (spent.sends / count < 8), "only what is not read is sent in pieces");
    }
  }
}

/// Returns how many registrations the device has.
int registrations() {
  std::FILE* const lines = ::popen("rdma resource show mr 2>/dev/null | wc -l", "r");
  int count = -1;
  const int read = lines != nullptr ? std::fscanf(lines, "%d", &count) : 0;
  if (lines != nullptr) ::pclose(lines);
  require(read == 1, "registrations are counted");
  return count;
}

void forget(const std::string& device) {
  const ucx::context context({.devices = {device}});
  std::vector<std::byte> bytes(longest);
  {  // whatever is registered once
    std::vector<std::byte> other(longest);
    const ucx::memory_region first(context, std::span(other), ucx::access::read);
  }
  const int before = registrations();
  for (int i = 0; i < 3; ++i) {
    ucx::memory_region region(context, std::span(bytes), ucx::access::read);
    require(registrations() == before + 1, "the region is registered");
    region.close();
    require(registrations() == before, "and no more");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() != 2) return 2;
  try {
    if (words[0] == "receive")
      receive(words[1]);
    else if (words[0] == "send")
      send(words[1]);
    else if (words[0] == "measure")
      measure(words[1]);
    else if (words[0] == "forget")
      forget(words[1]);
    else
      return 2;
    return 0;
  } catch (const std::exception& failed) {
    std::cerr << "ucxio-rdma-messages " << words[0] << ": " << failed.what() << '\n';
    return 1;
  }
}
