// Asks a server which functions its program lets peers call, and calls those of one kind.
#include <iostream>
#include <string>
#include <vector>

#include <ucx/access_rules.hpp>
#include <ucx/client.hpp>
#include <ucx/endpoint.hpp>
#include <ucx/rpc.hpp>
#include <ucx/server.hpp>

int main() {
  try {
    // What the rules do not allow does not exist for a client.
    ucx::server server({.bind = "unix:",
                        .rules = ucx::access_rules::parse("allow anybody call geometry.*\n"
                                                          "deny  anybody all  **\n")});
    ucx::call_table calls;
    calls.add("geometry.area", [](double a, double b) { return a * b; },
              {.documentation = "Returns the area of a rectangle."});
    calls.add("geometry.edge", [](double a, double b) { return 2 * (a + b); },
              {.documentation = "Returns the length of its edge."});
    calls.add("geometry.names", [] { return std::vector<std::string>{"rectangle"}; });
    calls.add("stop", [] {});
    const ucx::call_server serves(server, calls);

    // The client knows the types alone.
    const ucx::client client(server.url());
    const ucx::call_channel peer(client.connection());
    const ucx::call_signature wanted("(f64,f64)->f64");
    const std::vector<ucx::call_description> all = peer.signatures();
    double sum = 0;
    for (const ucx::call_description& each : all) {
      std::cout << each.called.name() << each.called.signature().text() << "  "
                << each.documentation << '\n';
      if (!(each.called.signature() == wanted)) continue;
      ucx::call_writer arguments;
      arguments.float64(3).float64(4);
      ucx::call_request asked = peer.start_dynamic_call(each.called, arguments);
      sum += asked.result().float64();
    }
    std::cout << "the sum of 3 by 4: " << sum << '\n';
    return all.size() == 3 && sum == 26 ? 0 : 1;
  } catch (const std::exception& failure) {
    std::cerr << "discover_calls: " << failure.what() << '\n';
    return 1;
  }
}
