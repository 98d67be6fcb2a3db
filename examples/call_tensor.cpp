// A matrix beside a call: it is not copied into the call, and lands in memory of its own. The
// result is a tensor, too, whose memory the function gives away.
#include <iostream>
#include <numeric>
#include <span>
#include <vector>

#include <ucx/error.hpp>
#include <ucx/rpc.hpp>
#include <ucx/worker.hpp>

// Runs at the callee. The type, the shape and the memory were compared with each other before.
ucx::tensor sum_rows(const ucx::tensor_view& matrix) {
  if (matrix.shape.size() != 2) {
    throw ucx::error(ucx::errc::invalid_argument, "a tensor that is no matrix");
  }
  const std::span<const double> all = matrix.elements<double>();
  const std::uint64_t rows = matrix.shape[0], columns = matrix.shape[1];
  ucx::tensor sums{{.type = ucx::element_type::f64, .shape = {rows}},
                   ucx::buffer(rows * sizeof(double))};
  auto* const each = reinterpret_cast<double*>(sums.memory.data());
  for (std::uint64_t i = 0; i < rows; ++i) {
    const auto row = all.subspan(i * columns, columns);
    each[i] = std::accumulate(row.begin(), row.end(), 0.0);
  }
  return sums;
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
  const ucx::context here = loopback();
  ucx::worker caller(here);
  const ucx::endpoint connection(caller, callee.address());
  const ucx::call_channel peer(connection);
  const auto matrix = ucx::tensor_view::of(std::span<const double>(numbers), {rows, columns});
  const auto sums = peer.call<ucx::tensor>("sum_rows", matrix);
  const ucx::tensor_view view = sums.view();
  const auto found = view.elements<double>();
  std::size_t wrong = rows - found.size();
  for (std::size_t i = 0; i < found.size(); ++i) {
    wrong += found[i] != static_cast<double>(i * columns);
  }
  std::cout << found.size() << " sums, " << wrong << " of them wrong\n";
  return wrong != 0;
}
