// Compares ways to do one thing, in turns: the machine has slow phases, in which everything drops
// together, so only the ratio of two neighbouring passes means anything.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ucx::benchmarks {

/// One way to do it. A pass takes about `pass_time()`, and returns how often it did it in a second.
struct contender {
  std::string name;
  std::function<double()> pass;
};

/// What a comparison says about us.
enum class measure {
  rate,    ///< Our rate by theirs: larger is better.
  cost,    ///< Our time by theirs: smaller is better.
  excess,  ///< Our time less theirs, in milliseconds: smaller is better.
  time,    ///< Our time in milliseconds, theirs beside it: smaller is better.
};

struct comparison {
  std::string name;
  contender ours;
  /// The measure is whichever of these proves best.
  std::vector<contender> others;
  measure by = measure::rate;
  double target = 0;  ///< Of the measure; 0: none.
  /// Multiplies a rate for display: bytes of one call, for example. Times are shown as such.
  double scale = 1;
  std::string unit;
};

double pass_seconds();
inline std::chrono::nanoseconds pass_time() {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(pass_seconds() * 1e9));
}

/// Does `action` again and again for a pass, and returns how often in a second.
template <class Action>
double repeat(Action action) {
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t calls = 0;
  std::chrono::duration<double> passed{};
  do {
    action();
    ++calls;
    passed = std::chrono::steady_clock::now() - start;
  } while (passed < pass_time());
  return static_cast<double>(calls) / passed.count();
}

/// Registers `compared` with Google Benchmark as "ratio/NAME", and each contender alone as
/// "pass/NAME/CONTENDER", which is for exploring.
void register_comparison(comparison compared);

/// Takes our options out of the arguments, Google Benchmark's too, runs what is registered (the
/// ratios, unless a filter says otherwise), and prints a table. Returns the exit status.
int run_comparisons(int& argc, char** argv, const std::function<void()>& register_all);

}  // namespace ucx::benchmarks
