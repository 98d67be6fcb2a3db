// What goes on until it fails: a client whose peer, whose link or whose device goes away.
//   "begun"                                  the first one has ended
//   "ended: CODE after MS ms: TEXT"          the failure; MS since the last one that ended well
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <vector>

#include "rdma/peer.hpp"
#include "support/bytes/pattern.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/remote_atomic.hpp"

namespace ucx::test {
namespace {

using clock = std::chrono::steady_clock;

/// Returns for how long it goes on at most.
std::chrono::seconds longest() {
  const char* const told = std::getenv("UCXIO_RDMA_SECONDS");
  return std::chrono::seconds(told != nullptr ? std::atoi(told) : 3600);
}

/// Does this again and again, and says how it ended. Without a failure for so long that is it.
void repeat(const std::function<void(std::error_code&)>& once) {
  const auto end = clock::now() + longest();
  auto last = clock::now();
  auto slowest = clock::duration::zero();
  const auto in_ms = [](clock::duration time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  };
  for (int count = 0; clock::now() < end; ++count) {
    std::error_code ec;
    std::string text;
    try {
      once(ec);
    } catch (const error& failed) {
      ec = failed.code();
      text = failed.what();
    }
    const auto took = clock::now() - last;
    if (ec) {
      std::cout << "ended: " << ec.message() << " after " << in_ms(took) << " ms: " << text
                << std::endl;
      return;
    }
    last = clock::now();
    if (count > 0) slowest = std::max(slowest, took);
    if (count == 0) std::cout << "begun" << std::endl;
  }
  std::cout << "went on; the longest took " << in_ms(slowest) << " ms" << std::endl;
}

}  // namespace

void read_on(const std::string& url) {
  client server = connect(url);
  remote_region region = open_by(server, "rma", "memory");
  std::vector<std::byte> all(memory_size);
  repeat([&](std::error_code&) {
    region.read_at(0, all);
    for (std::size_t i = 0; i < half; i += 511) require(all[i] == byte_at(i), "what is read");
  });
}

void write_on(const std::string& url) {
  client server = connect(url);
  remote_region region = open_by(server, "rma", "memory", access::read_write);
  const std::vector<std::byte> mine = pattern(half);
  repeat([&](std::error_code&) {
    region.write_at(half, mine);
    region.flush();
  });
}

void add_on(const std::string& url) {
  client server = connect(url);
  remote_region cells = server.open("cells", access::read_write);
  remote_atomic<std::uint64_t> sum(cells, 32);
  repeat([&](std::error_code&) { sum.fetch_add(1); });
}

/// Messages of 1 MiB, which come back.
void send_on(const std::string& url) {
  client server = connect(url);
  endpoint connection = server.connection();
  const std::vector<std::byte> mine = pattern(std::size_t{1} << 20U);
  std::vector<std::byte> back(mine.size());
  repeat([&](std::error_code&) {
    request sent = connection.start_send(1, mine);
    connection.receive(1, back);
    sent.wait();
    require(back == mine, "the message that comes back");
  });
}

namespace {

constexpr std::size_t pipe_part = std::size_t{1} << 20U;

/// Silence ends a pipe before `meets` in hosts.sh does.
pipe_options patient_pipe() {
  return {.heartbeat_timeout = std::chrono::seconds(10),
          .connect_timeout = std::chrono::seconds(60)};
}

}  // namespace

void pipe_on(const std::string& url) {
  opipestream out(url + "/endless", patient_pipe());
  const std::string text = pattern_text(pipe_part);
  repeat([&](std::error_code& ec) {
    out.write(text.data(), static_cast<std::streamsize>(text.size())).flush();
    if (!out.good()) throw error(out.error(), out.error_message());
    ec = {};
  });
}

/// The other end of that.
void drain_pipe(const std::string& url) {
  ipipestream in(url + "/endless", patient_pipe());
  const std::string expected = pattern_text(pipe_part);
  std::string text(pipe_part, '\0');
  repeat([&](std::error_code&) {
    if (!in.read(text.data(), static_cast<std::streamsize>(text.size())))
      throw error(in.error(), in.error_message());
    require(text == expected, "what comes by the pipe");
  });
}

}  // namespace ucx::test
