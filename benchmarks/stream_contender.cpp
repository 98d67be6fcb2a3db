// Our streams as alternatives/compare.py drives them, which says by UCXIO_TRANSFER_METHOD whether
// they read over TCP, or in place: each line of the standard input is one pass, "read SECONDS" or
// "write SECONDS", and is answered by a line with gigabytes in a second.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "network.hpp"
#include "raw_ucx.hpp"
#include "server_process.hpp"
#include "ucx/client.hpp"
#include "ucx/stream.hpp"

namespace ucx::benchmarks {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t mib = std::size_t{1} << 20U;
constexpr std::size_t matrix = 128 * mib;
constexpr std::uint64_t calls_of_round = matrix / mib;

class contender {
 public:
  double read(double seconds) {
    const double rate = repeat(
        seconds,
        [this](std::uint64_t call) {
          const std::uint64_t offset = call % calls_of_round * mib;
          if (offset == 0) in_.seekg(0);
          in_.read(reinterpret_cast<char*>(buffer_.data()), mib);
          check_pattern(buffer_, offset);
        },
        [] {});
    if (!in_) throw std::runtime_error("reading failed");
    return rate;
  }
  double write(double seconds) {
    ++stamp_;
    std::memcpy(source_.data(), &stamp_, sizeof stamp_);
    const double rate = repeat(
        seconds,
        [this](std::uint64_t call) {
          if (call % calls_of_round == 0) out_.seekp(0);
          out_.write(reinterpret_cast<const char*>(source_.data()), mib);
        },
        [this] { out_.flush(); });
    if (!out_) throw std::runtime_error("writing failed");
    std::uint64_t there = 0;
    to_write_.read_at(0, std::as_writable_bytes(std::span(&there, 1)));
    if (there != stamp_) throw std::runtime_error("what was written is not there");
    return rate;
  }

 private:
  static double repeat(double seconds, const std::function<void(std::uint64_t)>& call,
                       const std::function<void()>& end) {
    const clock::time_point start = clock::now();
    const auto passed = [&] { return std::chrono::duration<double>(clock::now() - start).count(); };
    std::uint64_t calls = 0;
    do {
      call(calls);
    } while (++calls % 8 != 0 || passed() < seconds);
    end();
    return static_cast<double>(calls * mib) / passed() / 1e9;
  }

  // As users make servers, with all the defaults; one whose bytes stay the pattern.
  server_process read_{matrix};
  server_process written_{matrix, server_process::memory::callers, access::read_write};
  client reads_{read_.url()};
  client writes_{written_.url()};
  remote_region to_read_ = reads_.open("matrix");
  remote_region to_write_ = writes_.open("matrix", access::read_write);
  istream in_{to_read_};
  ostream out_{to_write_};
  std::vector<std::byte> buffer_ = std::vector<std::byte>(mib);
  std::vector<std::byte> source_ = std::vector<std::byte>(mib);
  std::uint64_t stamp_ = 0;
};

void serve_passes() {
  contender streams;
  pin_to_core(reader_core);
  std::cout << "ready" << std::endl;
  std::string verb;
  for (double seconds = 0; std::cin >> verb >> seconds;) {
    std::cout << (verb == "read" ? streams.read(seconds) : streams.write(seconds)) << std::endl;
  }
}

}  // namespace
}  // namespace ucx::benchmarks

int main() {
  try {
    ucx::benchmarks::serve_passes();
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
