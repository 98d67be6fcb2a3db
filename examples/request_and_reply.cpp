// Calls a function of another process: an active message asks, another one answers.
#include <cstring>
#include <iostream>
#include <map>
#include <numeric>
#include <vector>

#include <ucx/endpoint.hpp>

// TCP on the loopback interface: nobody outside this machine can connect.
ucx::context loopback() { return ucx::context({.transports = {"tcp"}, .devices = {"lo"}}); }

constexpr std::uint64_t question = 1;  // the numbers of handlers
constexpr std::uint64_t answer = 2;

// What a peer sends may be anything: only its length says how many numbers there are.
std::vector<long> numbers_in(std::span<const std::byte> bytes) {
  std::vector<long> numbers(bytes.size() / sizeof(long));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(long));
  return numbers;
}

int main() {
  // The server: a thread of its worker's calls the handler.
  const ucx::context server_context = loopback();
  ucx::worker server(server_context, {.progress = ucx::progress_mode::sleeping_thread});
  server.on_message(question, [](ucx::message asked) {
    const std::vector<long> numbers = numbers_in(asked.data());
    const long sum = std::accumulate(numbers.begin(), numbers.end(), 0L);
    std::error_code ec;  // a client that is gone needs no answer
    asked.peer().post_send(ucx::active_message{answer, asked.header()},
                           std::as_bytes(std::span(&sum, 1)), 0,
                           {.memory = ucx::send_memory::copied}, ec);
  });

  // The client. The header tells which question an answer is about.
  const ucx::context context = loopback();
  ucx::worker client(context);
  ucx::endpoint peer(client, server.address());
  std::map<long, long> sums;
  client.on_message(answer, [&](ucx::message came) {
    const std::vector<long> which = numbers_in(came.header());
    const std::vector<long> sum = numbers_in(came.data());
    if (which.size() == 1 && sum.size() == 1) sums[which[0]] = sum[0];
  });
  for (long size = 1; size <= 100; ++size) {
    std::vector<long> numbers(static_cast<std::size_t>(size));
    std::iota(numbers.begin(), numbers.end(), 1L);
    peer.send(ucx::active_message{question, std::as_bytes(std::span(&size, 1))},
              std::as_bytes(std::span(numbers)));
  }
  while (sums.size() < 100 && !peer.status()) client.progress();
  std::cout << sums.size() << " answers; the sum of 1 to 100 is " << sums[100] << '\n';
  return sums[100] == 5050 ? 0 : 1;
}
