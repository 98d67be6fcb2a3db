// An owner tells its readers by messages when its data has changed. Readers subscribe by an active
// message.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <ucx/client.hpp>
#include <ucx/endpoint.hpp>
#include <ucx/server.hpp>

constexpr std::uint64_t subscribe = 1;  // the number of the owner's handler
constexpr std::uint64_t changed = 2;    // the tag of messages to readers

/// The readers of a server that want to learn of changes.
class subscribers {
 public:
  explicit subscribers(ucx::server& server) : server_(server) {
    for (std::size_t i = 0; i < server_.workers(); ++i) {
      server_.worker(i).on_message(subscribe, [this](ucx::message asked) {
        const std::lock_guard guard(mutex_);
        ucx::endpoint reader = asked.peer();
        if (tell(reader)) readers_.push_back(std::move(reader));  // the present version first
      });
    }
  }
  ~subscribers() {
    for (std::size_t i = 0; i < server_.workers(); ++i) server_.worker(i).on_message(subscribe, {});
  }
  void tell_all(std::uint64_t version) {
    const std::lock_guard guard(mutex_);
    version_ = version;
    std::erase_if(readers_, [this](ucx::endpoint& reader) { return !tell(reader); });
  }

 private:
  /// Returns whether the reader is still there. One that is slow needs no further message: it reads
  /// the data after those that it has.
  bool tell(ucx::endpoint& reader) {
    std::error_code ec;
    reader.post_send(changed, std::as_bytes(std::span(&version_, 1)), 0,
                     {.memory = ucx::send_memory::copied, .backpressure = ucx::backpressure::fail},
                     ec);
    return !ec || ec == ucx::errc::would_block;
  }

  ucx::server& server_;
  std::mutex mutex_;
  std::uint64_t version_ = 0;
  std::vector<ucx::endpoint> readers_;
};

void read_until(const std::string& url, std::uint64_t last) {
  ucx::client client(url);
  ucx::remote_region region = client.open("table");
  ucx::endpoint owner = client.connection();
  owner.send(ucx::active_message{subscribe}, {});
  std::vector<double> values(region.size() / sizeof(double));
  for (std::uint64_t version = 0; version < last;) {
    owner.receive(changed, std::as_writable_bytes(std::span(&version, 1)),
                  {.timeout = std::chrono::hours(1)});
    region.read_at(0, std::as_writable_bytes(std::span(values)));
    std::cout << "version " << version << " has " << values[0] << '\n';
  }
}

int main() {
  std::vector<double> table(1000);
  ucx::server server;
  const ucx::publication published = server.publish("table", std::as_bytes(std::span(table)));
  subscribers readers(server);
  std::jthread reader([url = server.url()] { read_until(url, 3); });
  for (std::uint64_t version = 1; version <= 3; ++version) {
    std::ranges::fill(table, static_cast<double>(version));
    readers.tell_all(version);
  }
}
