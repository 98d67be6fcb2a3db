// A server and its clients, each in a simulated process.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/fake_ucp/fake_network.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/server.hpp"
#include "worker/core_access.hpp"

namespace ucx::test {

struct simulated_server_options {
  link_options link = {};
  std::uint64_t seed = 1;
  context_options context = {};
  server_options server = {};
  client_options client = {};
  /// Real time that passes with each round of the server: for what threads of a store do meanwhile,
  /// which know nothing of simulated time. An idle round then takes no more simulated time.
  std::chrono::microseconds pause{0};
};

/// The server's worker makes progress while a client waits. Everything that is opened has to die
/// before this, which fails the test if UCX was misused or anything leaked.
class simulated_server {
 public:
  explicit simulated_server(const simulated_server_options& options = {})
      : network(options.link, options.seed),
        process(network.add_process("server")),
        options_(options) {
    if (options.pause.count() > 0) {
      link_options& link = network.link();
      link.idle_step = std::min<std::chrono::nanoseconds>(link.idle_step, options.pause);
    }
    server_options chosen = options.server;
    chosen.worker.progress = progress_mode::caller;
    std::error_code ec;
    made.emplace(detail::core_access::make_server(context_in(process), chosen, ec));
    if (ec) throw std::system_error(ec, "making a simulated server");
    process.on_pump([this] {
      if (options_.pause.count() > 0) std::this_thread::sleep_for(options_.pause);
      if (made) made->worker().progress();
    });
  }
  ~simulated_server() {
    process.on_pump({});
    for (fake_process* each : clients_) each->on_pump({});
    made.reset();
  }
  simulated_server(const simulated_server&) = delete;
  simulated_server& operator=(const simulated_server&) = delete;

  ucx::server& server() { return *made; }

  /// Connects a client of a process of its own, by worker address or by the listener.
  client connect(std::error_code& ec, bool by_listener = true) {
    fake_process& own = network.add_process("client " + std::to_string(clients_.size()));
    clients_.push_back(&own);
    const server_address where = made->address();
    return by_listener ? detail::core_access::make_client(context_in(own), where.socket,
                                                          options_.client, ec)
                       : detail::core_access::make_client(context_in(own), where.worker,
                                                          options_.client, ec);
  }
  client connect(bool by_listener = true) {
    std::error_code ec;
    client connected = connect(ec, by_listener);
    if (ec) throw std::system_error(ec, "connecting a simulated client");
    return connected;
  }
  /// Returns the process of the newest client.
  fake_process& client_process() { return *clients_.back(); }
  context context_in(fake_process& owner) {
    std::error_code ec;
    context parent = detail::core_access::make_context(owner.api(), options_.context, ec);
    if (ec) throw std::system_error(ec, owner.name());
    return parent;
  }

  fake_network network;

 private:
  // Dies after everything that was made on the network, and before the network.
  struct last_look {
    const fake_network& network;
    ~last_look() { network.expect_clean(); }
  };
  last_look last_look_{network};

 public:
  fake_process& process;
  std::optional<ucx::server> made;

 private:
  simulated_server_options options_;
  std::vector<fake_process*> clients_;
};

}  // namespace ucx::test
