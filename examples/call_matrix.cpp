// Calls with a matrix by reference: the callee reads the caller's matrix, and fills its result,
// where they are. No byte of either is in the call.
#include <iostream>
#include <numeric>
#include <span>
#include <vector>

#include <ucx/error.hpp>
#include <ucx/rpc.hpp>
#include <ucx/worker.hpp>

using matrix = ucx::window<ucx::access::read>;
using sums = ucx::window<ucx::access::write>;

constexpr std::size_t most_bytes = std::size_t{1} << 30U;

// Runs at the callee, which does not take the caller's word for how much memory it needs. It reads
// a row while other calls run, and writes all sums at once.
ucx::call_task<std::uint64_t> sum_rows(ucx::call_context& call, matrix from, sums into) {
  if (into.size() < sizeof(double) || into.size() > most_bytes || from.size() > most_bytes) {
    throw ucx::error(ucx::errc::invalid_argument, "a matrix of no rows, or of too many");
  }
  ucx::remote_region rows = from.open(*call.peer);
  ucx::remote_region found = into.open(*call.peer);
  std::vector<double> here(into.size() / sizeof(double));
  std::vector<double> row(from.size() / sizeof(double) / here.size());
  for (std::size_t i = 0; i < here.size(); ++i) {
    co_await rows.start_read_at(i * row.size() * sizeof(double),
                                std::as_writable_bytes(std::span(row)));
    here[i] = std::accumulate(row.begin(), row.end(), 0.0);
  }
  co_await found.start_write_at(0, std::as_bytes(std::span(here)));
  co_await found.start_flush();  // from here on the caller sees them
  co_return here.size();
}

// TCP on the loopback interface: nobody outside this machine can connect.
ucx::context loopback() { return ucx::context({.transports = {"tcp"}, .devices = {"lo"}}); }

int main() {
  const ucx::context there = loopback();
  const ucx::worker callee(there, {.progress = ucx::progress_mode::sleeping_thread});
  ucx::call_table calls;
  calls.add("sum_rows", sum_rows);
  const ucx::call_server serves(callee, calls);

  constexpr std::size_t rows = 512, columns = 512;
  std::vector<double> numbers(rows * columns);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i / columns);
  std::vector<double> found(rows, -1);
  const ucx::context here = loopback();
  ucx::worker caller(here);
  const ucx::endpoint connection(caller, callee.address());
  const ucx::call_channel peer(connection);
  const auto count = peer.call<std::uint64_t>("sum_rows", matrix(std::as_bytes(std::span(numbers))),
                                              sums(std::as_writable_bytes(std::span(found))));
  std::size_t wrong = rows - count;
  for (std::size_t i = 0; i < rows; ++i) wrong += found[i] != static_cast<double>(i * columns);
  std::cout << count << " rows, " << wrong << " of them wrong\n";
  return wrong != 0;
}
