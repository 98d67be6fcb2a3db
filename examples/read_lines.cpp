// Reads the lines of a buffer that belongs to somebody else. Owner and reader are in one process
// here, to be short; only `address` and `descriptor` go from one to the other.
#include <iostream>
#include <string>

#include <ucx/memory_region.hpp>
#include <ucx/stream.hpp>

// TCP on the loopback interface: nobody outside this machine can connect.
ucx::context loopback() { return ucx::context({.transports = {"tcp"}, .devices = {"lo"}}); }

int main() {
  // The owner: a text, and a thread that answers who asks for it.
  std::string text;
  for (int i = 1; i <= 100'000; ++i) text += "line " + std::to_string(i) + '\n';
  const ucx::context owner_context = loopback();
  const ucx::worker owner(owner_context, {.progress = ucx::progress_mode::sleeping_thread});
  const ucx::memory_region region(owner_context, std::as_bytes(std::span(text)));
  const ucx::worker_address address = owner.address();
  const ucx::remote_descriptor descriptor = region.descriptor();

  // The reader.
  const ucx::context context = loopback();
  const ucx::worker worker(context);
  const ucx::endpoint peer(worker, address);
  const ucx::remote_region remote(peer, descriptor);
  ucx::istream in(remote);
  std::string line;
  std::string last;
  int count = 0;
  while (std::getline(in, line)) {
    ++count;
    last = line;
  }
  // The end of the region is the end of the stream; a failure would have set badbit.
  if (in.bad()) {
    std::cerr << "reading failed: " << in.error().message() << '\n';
    return 1;
  }
  // A seek costs nothing; the next read fetches what it needs.
  in.clear();
  in.seekg(0);
  std::getline(in, line);
  std::cout << count << " lines, from \"" << line << "\" to \"" << last << "\"\n";
  return count == 100'000 && line == "line 1" && last == "line 100000" ? 0 : 1;
}
