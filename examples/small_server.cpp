// A server in thirty lines: a table of this process, which changes while others read it, and a file
// of this machine. Serves until its standard input ends.
//   small_server       prints ucxs://127.0.0.1:41231
//   ucxio ls ucxs://127.0.0.1:41231
#include <algorithm>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include <ucx/server.hpp>

int main() {
  try {
    std::vector<double> table(1000, 0.5);
    ucx::server server;
    const ucx::publication values =
        server.publish("table", std::as_writable_bytes(std::span(table)), ucx::access::read_write);
    const ucx::publication notes = server.publish_file("etc/os-release", "/etc/os-release");
    std::cout << server.url() << std::endl;

    // A thread of the server's own answers; this one is free.
    for (std::string line; std::getline(std::cin, line);) {
      std::fill(table.begin(), table.end(), std::stod(line));
    }
    std::cout << server.statistics().opens << " times something was opened\n";
    return 0;
  } catch (const std::exception& failure) {  // ucx::error says what failed, where, and why
    std::cerr << "small_server: " << failure.what() << '\n';
    return 1;
  }
}
