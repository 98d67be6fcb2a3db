// A function that takes a std::istream does not know, and need not know, where the bytes are: here
// the same one reads a local string and another worker's memory.
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include <ucx/memory_region.hpp>
#include <ucx/stream.hpp>

// Written for any stream, long before there was a remote one.
std::map<std::string, double> totals(std::istream& in) {
  std::map<std::string, double> sums;
  std::string name;
  double amount = 0;
  while (in >> name >> amount) sums[name] += amount;
  return sums;
}

// TCP on the loopback interface: nobody outside this machine can connect.
ucx::context loopback() { return ucx::context({.transports = {"tcp"}, .devices = {"lo"}}); }

int main() {
  const std::string text = "apples 3.5\npears 2\napples 1.25\nplums 7\npears 0.5\n";

  // The owner, who would be another process.
  const ucx::context owner_context = loopback();
  const ucx::worker owner(owner_context, {.progress = ucx::progress_mode::sleeping_thread});
  const ucx::memory_region region(owner_context, std::as_bytes(std::span(text)));

  // The reader.
  const ucx::context context = loopback();
  const ucx::worker worker(context);
  const ucx::endpoint peer(worker, owner.address());
  const ucx::remote_region remote(peer, region.descriptor());

  std::istringstream local(text);
  ucx::istream distant(remote);
  const auto here = totals(local);
  const auto there = totals(distant);
  for (const auto& [name, sum] : there) std::cout << name << ": " << sum << '\n';
  std::cout << (here == there ? "the same" : "not the same") << " as from a local string\n";
  return here == there && here.size() == 3 ? 0 : 1;
}
