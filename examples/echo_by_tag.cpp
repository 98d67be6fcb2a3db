// Messages with tags: a server sends back what it gets. Both are in one process here, to be short.
#include <future>
#include <iostream>
#include <optional>
#include <string>
#include <thread>

#include <ucx/endpoint.hpp>
#include <ucx/listener.hpp>

// TCP on the loopback interface: nobody outside this machine can connect.
ucx::context loopback() { return ucx::context({.transports = {"tcp"}, .devices = {"lo"}}); }

// Answers one peer, until it sends an empty message.
void serve(std::promise<ucx::socket_address>& where) {
  const ucx::context context = loopback();
  ucx::worker worker(context);
  std::optional<ucx::endpoint> peer;
  const ucx::listener door(
      worker, ucx::socket_address("127.0.0.1:0"),
      [&](ucx::connection_request knocks) { peer.emplace(worker, std::move(knocks)); });
  where.set_value(door.address());
  while (!peer) worker.progress();
  std::string text(1 << 20, '\0');
  for (;;) {
    const auto came = peer->receive(ucx::tag_match::any(), std::as_writable_bytes(std::span(text)));
    if (came.length == 0) return;
    peer->send(came.tag, std::as_bytes(std::span(text)).first(came.length));
  }
}

int main() {
  std::promise<ucx::socket_address> where;
  std::jthread server([&] { serve(where); });

  const ucx::context context = loopback();
  ucx::worker worker(context);
  ucx::endpoint peer(worker, where.get_future().get());
  bool good = true;
  for (std::uint64_t tag = 1; tag <= 20; ++tag) {
    const std::string said(std::size_t{1} << tag, static_cast<char>('a' + tag));
    std::string heard(said.size(), '\0');
    ucx::request answer = peer.start_receive(tag, std::as_writable_bytes(std::span(heard)));
    peer.send(tag, std::as_bytes(std::span(said)));
    answer.wait();
    good = good && heard == said;
  }
  peer.send(0, {});
  std::cout << (good ? "every echo was right\n" : "an echo was wrong\n");
  return good ? 0 : 1;
}
