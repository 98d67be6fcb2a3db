// Uses the installed package as a stranger would: writes into a region through one stream, reads it
// back through another, and checks that core and streams are of one version.
#include <iostream>
#include <span>
#include <string>
#include <ucx/context.hpp>
#include <ucx/endpoint.hpp>
#include <ucx/memory_region.hpp>
#include <ucx/remote_region.hpp>
#include <ucx/stream.hpp>
#include <ucx/version.hpp>
#include <ucx/worker.hpp>
#include <vector>

int main() {
  const ucx::context context;
  std::vector<std::byte> memory(4096);
  const ucx::worker owner(context, {.progress = ucx::progress_mode::sleeping_thread});
  const ucx::memory_region exposed(context, std::span(memory), ucx::access::read_write);

  const ucx::worker reader(context);
  const ucx::endpoint connection(reader, owner.address());
  const ucx::remote_region region(connection, exposed.descriptor());

  ucx::ostream out(region);
  out << "forty-two 42\n";
  out.close();
  ucx::istream in(region);
  std::string word;
  int number = 0;
  in >> word >> number;

  std::cout << "ucxio " << to_string(ucx::version()) << ": " << word << ' ' << number << '\n';
  return out && word == "forty-two" && number == 42 ? 0 : 1;
}
