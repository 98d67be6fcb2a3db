// The C++ library as python_benchmark.py drives it: each line of the standard input is a pass,
// "stream SECONDS" or "pread SECONDS", and is answered by the seconds that one call took.
#include <chrono>
#include <exception>
#include <functional>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "ucx/client.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/stream.hpp"
#include "ucx/url.hpp"

namespace {

using clock = std::chrono::steady_clock;

double time_of_call(double seconds, const std::function<void()>& call) {
  const clock::time_point start = clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(clock::now() - start).count(); };
  std::size_t calls = 0;
  do {
    call();
  } while (++calls % 8 != 0 || passed() < seconds);
  return passed() / static_cast<double>(calls);
}

void run(const ucx::url& of) {
  ucx::client client(of.server());
  ucx::remote_region region = client.open(of.name());
  ucx::istream in(region);
  std::vector<char> buffer(std::size_t{1} << 20U);
  std::size_t at = 0;
  std::string what;
  double seconds = 0;
  while (std::cin >> what >> seconds) {
    const double took =
        what == "stream" ? time_of_call(seconds,
                                        [&] {
                                          if (at + buffer.size() > region.size()) {
                                            in.seekg(0);
                                            at = 0;
                                          }
                                          in.read(buffer.data(), 1 << 20);
                                          at += buffer.size();
                                        })
                         : time_of_call(seconds, [&] {
                             region.read_at(0, std::as_writable_bytes(std::span(buffer.data(), 8)));
                           });
    if (!in) throw std::runtime_error("reading failed");
    std::cout << took << std::endl;
  }
}

}  // namespace

int main(int, char** arguments) try {
  run(ucx::url(arguments[1]));
} catch (const std::exception& failed) {
  std::cerr << "python_contender: " << failed.what() << '\n';
  return 1;
}
