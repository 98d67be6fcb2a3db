// The paths whose length matters, walked so that callgrind can count them: check.py runs this.
#include <gnu/libc-version.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "instructions/instruction_count.hpp"
#include "support/simulated/remote_memory.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/stream.hpp"
#include "ucx/version.hpp"

namespace ucx::test {
namespace {

constexpr std::size_t kibibyte = 1024;
constexpr std::size_t mebibyte = 1024 * kibibyte;
constexpr std::size_t region_size = 16 * mebibyte;
/// Far enough apart that no answer to one is an answer to the next.
constexpr std::size_t scattered = 64 * kibibyte + 64;

/// A network without delay: waiting for it would be most of what is counted.
simulated_pair_options without_delay() {
  simulated_pair_options options;
  options.link.latency = std::chrono::nanoseconds(0);
  options.link.bytes_per_second = 1e18;
  return options;
}

void require(bool truth, const char* what) {
  if (!truth) throw std::runtime_error(what);
}

/// Walks the path until nothing is done for the first time, and then counts.
void count(fake_network& network, const std::string& path, std::uint64_t operations,
           const std::function<void()>& walk, unsigned warm_ups = 2) {
  for (unsigned i = 0; i < warm_ups; ++i) walk();
  const instruction_count counted(network, path, operations);
  walk();
}

/// Reads on until `wanted` bytes are in the buffer, at the reader's own memory.
void fill_buffer(ucx::istream& in, std::size_t wanted) {
  std::vector<char> piece(kibibyte);
  in.seekg(0);
  do {  // an empty buffer tells how much is left at the peer
    require(static_cast<bool>(in.read(piece.data(), kibibyte)), "the buffer does not fill");
  } while (in.rdbuf()->in_avail() < static_cast<std::streamsize>(wanted));
}

void count_buffered(remote_memory& memory, const std::string& suffix) {
  constexpr std::size_t characters = 64 * kibibyte;
  constexpr std::size_t small = 64;
  ucx::istream in(memory.region);
  fill_buffer(in, characters);
  {
    const instruction_count counted(memory.pair.network, "get()" + suffix, characters);
    for (std::size_t i = 0; i < characters; ++i) in.get();
  }
  fill_buffer(in, characters);
  std::vector<char> into(small);
  {
    const instruction_count counted(memory.pair.network, "read 64 B from the buffer" + suffix,
                                    characters / small);
    for (std::size_t i = 0; i < characters / small; ++i) in.read(into.data(), small);
  }
  require(in.good(), "reading from the buffer failed");
}

void count_small_transfers(remote_memory& memory) {
  constexpr std::uint64_t times = 256;
  std::vector<std::byte> bytes(8);
  const auto each_place = [&](auto visit) {
    return [visit] {
      for (std::uint64_t i = 0; i < times; ++i) visit(i * scattered % (region_size - 8));
    };
  };
  fake_network& network = memory.pair.network;
  count(network, "remote read 8 B", times,
        each_place([&](std::uint64_t at) { memory.region.read_at(at, bytes); }));
  count(network, "remote write and flush 8 B", times, each_place([&](std::uint64_t at) {
          memory.region.write_at(at, bytes);
          memory.region.flush();
        }));
  ucx::istream in(memory.region);
  count(network, "seek and read 8 B", times, each_place([&](std::uint64_t at) {
          in.seekg(static_cast<std::streamoff>(at));
          in.read(reinterpret_cast<char*>(bytes.data()), 8);
        }));
  require(in.good(), "seeking and reading failed");
}

void count_reading(remote_memory& memory) {
  constexpr std::uint64_t calls = region_size / mebibyte;
  std::vector<char> bytes(mebibyte);
  ucx::istream in(memory.region);
  count(memory.pair.network, "stream read 1 MiB", calls, [&] {
    in.seekg(0);
    for (std::uint64_t i = 0; i < calls; ++i) in.read(bytes.data(), mebibyte);
  });
  require(in.good(), "reading failed");
}

void count_writing(remote_memory& memory) {
  constexpr std::uint64_t calls = region_size / mebibyte;
  constexpr std::uint64_t small_calls = 4 * mebibyte / 64;
  std::vector<char> bytes(mebibyte);
  ucx::ostream out(memory.region);
  count(memory.pair.network, "stream write 1 MiB", calls, [&] {
    out.seekp(0);
    for (std::uint64_t i = 0; i < calls; ++i) out.write(bytes.data(), mebibyte);
    out.flush();
  });
  count(memory.pair.network, "stream write 64 B", small_calls, [&] {
    out.seekp(0);
    for (std::uint64_t i = 0; i < small_calls; ++i) out.write(bytes.data(), 64);
    out.flush();
  });
  require(out.good(), "writing failed");
}

void count_messages() {
  constexpr std::uint64_t times = 256;
  constexpr std::uint64_t tag = 7;
  simulated_messages both(without_delay());
  endpoint back = both.back();
  const std::vector<std::byte> bytes(8);
  std::vector<std::byte> into(8);
  count(both.network(), "tagged message 8 B, there and back", times, [&] {
    for (std::uint64_t i = 0; i < times; ++i) {
      request there = both.receiver().start_receive(tag, into);
      both.sender.send(tag, bytes);
      there.wait();
      request here = both.sender.start_receive(tag, into);
      back.send(tag, bytes);
      here.wait();
    }
  });
}

void count_all() {
  {
    remote_memory memory(std::string(region_size, 'x'), without_delay());
    count_buffered(memory, "");
    count_small_transfers(memory);
    count_reading(memory);
    count_writing(memory);
  }
  {
    simulated_pair_options options = without_delay();
    options.shares_memory = true;
    remote_memory memory(std::string(mebibyte, 'x'), options);
    require(memory.region.transfer_method() == transfer_method::mapped,
            "shared memory is not mapped");
    count_buffered(memory, ", mapped");
  }
  count_messages();
}

/// Whatever makes other instructions of the same source.
void print_environment() {
  std::printf("compiler  %s\nflags     %s\nlibraries UCX %s, glibc %s\n", UCXIO_COMPILER,
              UCXIO_FLAGS, to_string(ucx_version()).c_str(), ::gnu_get_libc_version());
}

}  // namespace
}  // namespace ucx::test

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--environment") {
    ucx::test::print_environment();
    return 0;
  }
  try {
    ucx::test::count_all();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
  // What the simulation complains of.
  return testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed() ? 1 : 0;
}
