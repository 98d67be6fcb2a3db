// A writer tells the owner of a region when its writes are in place. The owner publishes the
// descriptor of the region, because a published name takes no notifications.
#include <chrono>
#include <iostream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <ucx/client.hpp>
#include <ucx/endpoint.hpp>
#include <ucx/memory_region.hpp>
#include <ucx/server.hpp>

void write_text(const std::string& url, const std::string& text) {
  ucx::client client(url);
  ucx::remote_region published = client.open("inbox");
  std::vector<std::byte> descriptor(published.size());
  published.read_at(0, descriptor);
  ucx::remote_region inbox(client.connection(), ucx::remote_descriptor::decode(descriptor));
  inbox.write_at(0, std::as_bytes(std::span(text)));
  inbox.notify(text.size());  // returns when the owner has it
}

int main() {
  ucx::server server;
  ucx::memory_region inbox =
      ucx::memory_region::allocate(server.worker().parent(), 4096, ucx::access::write);
  const std::vector<std::byte> descriptor = inbox.descriptor().encode();
  const ucx::publication published = server.publish("inbox", std::span(descriptor));
  std::jthread writer([url = server.url()] { write_text(url, "hello"); });  // elsewhere as a rule

  const ucx::notification said =
      inbox.wait_notify(server.worker(), {.timeout = std::chrono::minutes(1)});
  if (said.value > inbox.size()) return 1;  // a peer can say anything
  std::cout << std::string(reinterpret_cast<const char*>(inbox.bytes().data()), said.value) << '\n';
}
