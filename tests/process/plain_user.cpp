// A process that uses memory which another one exposes by UCX's own calls (plain_peer.cpp).
//   ucxio-plain-user read|write TRANSPORTS ADDRESS DESCRIPTOR SECONDS [stops]
// TRANSPORTS with commas between. ADDRESS: of the worker, or HOST:PORT. DESCRIPTOR: a foreign one.
// It moves all of the memory without end, from the fourth time on within SECONDS each. It prints
// "moving MICROSECONDS" after the third time (how long that took), and "ended VALUE" (of ucx::errc)
// when a transfer failed. A line ends it with 0. With "stops" it stops itself in the middle of the
// fourth time, and then prints "late MILLISECONDS" first: so long it worked behind the deadline
// until that transfer ended, or behind the moment when this process went on. Where a transfer timed
// out, it moves all of it once more, in any time, and prints "again VALUE".
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include "plain_owner.hpp"
#include "support/basics/processor_time.hpp"
#include "support/bytes/hex.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using clock = std::chrono::steady_clock;

constexpr io_options in_any_time{.timeout = std::chrono::seconds(120)};

bool is_told_to_end() {
  ::pollfd input = {0, POLLIN, 0};
  return ::poll(&input, 1, 0) > 0;
}

/// How a process uses a region.
struct plain_use {
  worker& driven;
  remote_region& region;
  bool writes;
  io_options within;
  std::vector<std::byte> bytes = std::vector<std::byte>(region.size(), std::byte{'w'});

  /// Moves all of the region once.
  std::error_code move_all(const io_options& in_time) {
    std::error_code ec;
    if (!writes) {
      region.read_at(0, bytes, in_time, ec);
      return ec;
    }
    region.write_at(0, bytes, in_time, ec);
    if (!ec) region.flush(in_time, ec);
    return ec;
  }

  /// Stops this process when a transfer has begun, and is not over. UCX has a part of the bytes at
  /// once, and the owner sends no more than that unasked.
  std::error_code move_and_stop() {
    request moved =
        writes ? region.start_write_at(0, bytes, within) : region.start_read_at(0, bytes, within);
    const auto deadline = clock::now() + within.timeout;
    driven.progress();
    ::raise(SIGSTOP);
    const auto due = std::max(clock::now(), deadline);
    work_behind late(due);
    while (!moved.done() && clock::now() < due + std::chrono::minutes(1)) {
      driven.progress();
      late.look();
    }
    const auto worked = std::chrono::duration_cast<std::chrono::milliseconds>(late.look());
    std::cout << "late " << worked.count() << std::endl;
    return moved.error();
  }

  std::error_code move_without_end(bool stops) {
    for (int count = 1; !is_told_to_end(); ++count) {
      if (stops && count == 4) return move_and_stop();
      const auto began = std::chrono::steady_clock::now();
      if (const std::error_code ec = move_all(count < 4 ? in_any_time : within)) return ec;
      const auto took = std::chrono::steady_clock::now() - began;
      if (count != 3) continue;
      std::cout << "moving " << std::chrono::duration_cast<std::chrono::microseconds>(took).count()
                << std::endl;
    }
    return {};
  }
};

std::error_code use(const std::vector<std::string>& words) {
  plain_reader side(parts_of(words[1]));
  const std::string& where = words[2];
  const bool by_listener = where.find(':') != std::string::npos;
  const endpoint connection =
      by_listener ? endpoint(side.driven, socket_address(where), {.plain_peer = true})
                  : side.connect(worker_address::from_native(from_hex(where)));
  remote_region region(connection, remote_descriptor::decode(from_hex(words[3])),
                       {.trusted_peer = true});
  plain_use all{.driven = side.driven,
                .region = region,
                .writes = words[0] == "write",
                .within = {.timeout = std::chrono::seconds(std::stoi(words[4]))}};
  const std::error_code ended = all.move_without_end(words.size() == 6);
  if (ended == errc::timed_out) {
    std::error_code told_once;
    region.flush(in_any_time, told_once);  // of that write
    std::cout << "again " << all.move_all(in_any_time).value() << std::endl;
  }
  return ended;
}

}  // namespace
}  // namespace ucx::test

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() != 5 && words.size() != 6) return 2;
  int value = 0;
  try {
    value = ucx::test::use(words).value();
  } catch (const ucx::error& failed) {
    std::cerr << failed.what() << '\n';
    value = failed.code().value();
  }
  std::cout << "ended " << value << std::endl;
}
