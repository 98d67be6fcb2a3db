// Functions of C++ that the tests of the package for Python call: they use memory of the caller.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include <ucx/rpc.hpp>
#include <ucx/server.hpp>

namespace {

ucx::call_task<std::uint64_t> sum(ucx::call_context& call, ucx::window<ucx::access::read> from) {
  ucx::remote_region there = from.open(*call.peer);
  std::vector<std::byte> here(from.size());
  co_await there.start_read_at(0, here);
  std::uint64_t found = 0;
  for (const std::byte each : here) found += std::to_integer<std::uint64_t>(each);
  co_return found;
}

ucx::call_task<void> fill(ucx::call_context& call, ucx::window<ucx::access::read_write> into,
                          std::uint8_t value) {
  ucx::remote_region there = into.open(*call.peer);
  const std::vector<std::byte> here(into.size(), std::byte{value});
  co_await there.start_write_at(0, here);
  co_await there.start_flush();
}

int add(int a, int b) { return a + b; }

}  // namespace

int main() {
  ucx::server server({.bind = "unix:", .context = {.transports = {"socket"}}});
  ucx::call_table calls;
  calls.add("sum", sum);
  calls.add("fill", fill);
  calls.add("add", add);
  const ucx::call_server serves(server, calls);
  std::cout << server.url("") << std::endl;
  std::string nothing;
  std::getline(std::cin, nothing);  // until the test ends
}
