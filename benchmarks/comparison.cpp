#include "comparison.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <numeric>
#include <random>
#include <string_view>
#include <utility>

namespace ucx::benchmarks {
namespace {

struct run_options {
  unsigned passes = 15;
  double pass_seconds = 0.1;
  bool show_passes = false;
};

/// Set once, before anything is registered.
run_options& chosen() {
  static run_options options;
  return options;
}

double quantile(std::vector<double> values, double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

double milliseconds(double rate) { return 1e3 / rate; }

bool is_ratio(measure by) { return by == measure::rate || by == measure::cost; }

double shown(double rate, const comparison& compared) {
  return is_ratio(compared.by) ? rate * compared.scale : milliseconds(rate);
}

/// rates[c][p]: of contender c (0: ours) in pass p.
std::vector<std::vector<double>> run_in_turns(const comparison& compared) {
  std::vector<const contender*> all{&compared.ours};
  for (const contender& other : compared.others) all.push_back(&other);
  for (const contender* warm : all) warm->pass();
  std::vector<std::vector<double>> rates(all.size());
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 shuffler(1);
  for (unsigned pass = 0; pass < chosen().passes; ++pass) {
    std::shuffle(order.begin(), order.end(), shuffler);
    for (const std::size_t i : order) rates[i].push_back(all[i]->pass());
    if (!chosen().show_passes) continue;
    for (const std::vector<double>& each : rates)
      std::printf("%9.3f", shown(each.back(), compared));
    std::printf("\n");
  }
  return rates;
}

double measured(double ours, double theirs, measure by) {
  switch (by) {
    case measure::rate:
      return ours / theirs;
    case measure::cost:
      return theirs / ours;
    case measure::excess:
      return milliseconds(ours) - milliseconds(theirs);
    case measure::time:
      break;
  }
  return milliseconds(ours);
}

std::vector<double> measured(const std::vector<double>& ours, const std::vector<double>& theirs,
                             measure by) {
  std::vector<double> each;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    each.push_back(measured(ours[i], theirs[i], by));
  }
  return each;
}

void compare(benchmark::State& state, const comparison& compared) {
  for ([[maybe_unused]] auto once : state) {
    const auto rates = run_in_turns(compared);
    // The best is the one beside which we look worst.
    std::size_t best = 1;
    std::vector<double> beside_best = measured(rates[0], rates[1], compared.by);
    for (std::size_t i = 2; i < rates.size(); ++i) {
      const std::vector<double> each = measured(rates[0], rates[i], compared.by);
      const double change = quantile(each, 0.5) - quantile(beside_best, 0.5);
      if (compared.by == measure::rate ? change >= 0 : change <= 0) continue;
      best = i;
      beside_best = each;
    }
    state.SetIterationTime(1 / quantile(rates[0], 0.5));
    state.SetLabel(compared.others[best - 1].name);
    const std::string key = is_ratio(compared.by) ? "ratio" : "ms";
    state.counters[key] = quantile(beside_best, 0.5);
    state.counters[key + "_q1"] = quantile(beside_best, 0.25);
    state.counters[key + "_q3"] = quantile(beside_best, 0.75);
    state.counters["target"] = compared.target;
    state.counters["smaller_is_better"] = compared.by == measure::rate ? 0 : 1;
    state.counters["ours"] = shown(quantile(rates[0], 0.5), compared);
    state.counters["best"] = shown(quantile(rates[best], 0.5), compared);
    for (std::size_t i = 1; i < rates.size(); ++i) {
      state.counters["vs " + compared.others[i - 1].name] =
          quantile(measured(rates[0], rates[i], compared.by), 0.5);
    }
  }
}

/// Prints the comparisons as a table, and everything else as Google Benchmark does.
class table_reporter final : public benchmark::ConsoleReporter {
 public:
  bool ReportContext(const Context&) override {
    std::printf("%-26s %9s %9s  %-24s %6s %15s  %s\n", "", "ours", "best", "which", "ratio",
                "quartiles", "target");
    return true;
  }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const std::string name = run.benchmark_name();
      if (run.error_occurred) {
        std::printf("%s: %s\n", name.c_str(), run.error_message.c_str());
        failed_ = true;
      } else if (run.counters.count("target") == 0) {
        std::printf("%-60s %12.3f %s\n", bare(name).c_str(), run.counters.at("rate").value,
                    run.report_label.c_str());
      } else {
        print(run);
      }
    }
    std::fflush(stdout);
  }
  bool failed() const noexcept { return failed_; }

 private:
  static std::string bare(std::string name) {
    name.erase(std::min(name.find("/iterations:"), name.size()));
    name.erase(0, name.find('/') + 1);
    return name;
  }
  static void print(const Run& run) {
    const auto value = [&](const std::string& key) { return run.counters.at(key).value; };
    const bool ratio = run.counters.count("ratio") != 0;
    const std::string key = ratio ? "ratio" : "ms";
    const bool smaller = value("smaller_is_better") > 0;
    const double target = value("target");
    std::string verdict;
    if (target > 0) {
      const bool met = smaller ? value(key) <= target : value(key) >= target;
      char text[32];
      std::snprintf(text, sizeof text, "%s %.2f%s%s", smaller ? "<=" : ">=", target,
                    ratio ? "" : " ms", met ? "" : "  SHORT");
      verdict = text;
    }
    std::printf("%-26s %9.3f %9.3f  %-24s %6.2f   [%.2f .. %.2f]  %s\n",
                bare(run.benchmark_name()).c_str(), value("ours"), value("best"),
                run.report_label.c_str(), value(key), value(key + "_q1"), value(key + "_q3"),
                verdict.c_str());
  }

  bool failed_ = false;
};

void take_options(int& argc, char** argv) {
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--passes=")) {
      chosen().passes = static_cast<unsigned>(std::max(1, std::atoi(argv[i] + 9)));
    } else if (argument.starts_with("--pass_seconds=")) {
      chosen().pass_seconds = std::max(0.001, std::atof(argv[i] + 15));
    } else if (argument == "--show_passes") {
      chosen().show_passes = true;
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
}

template <class Body>
void guarded(benchmark::State& state, Body body) {
  try {
    body();
  } catch (const std::exception& failure) {
    state.SkipWithError(failure.what());
  }
}

}  // namespace

double pass_seconds() { return chosen().pass_seconds; }

void register_comparison(comparison compared) {
  const auto shared = std::make_shared<const comparison>(std::move(compared));
  benchmark::RegisterBenchmark(
      ("ratio/" + shared->name).c_str(),
      [shared](benchmark::State& state) { guarded(state, [&] { compare(state, *shared); }); })
      ->Iterations(1)
      ->UseManualTime();
  const auto register_pass = [&](const contender& alone) {
    benchmark::RegisterBenchmark(("pass/" + shared->name + "/" + alone.name).c_str(),
                                 [shared, &alone](benchmark::State& state) {
                                   guarded(state, [&] {
                                     for ([[maybe_unused]] auto once : state) {
                                       const double rate = alone.pass();
                                       state.SetIterationTime(1 / rate);
                                       state.counters["rate"] = rate * shared->scale;
                                       state.SetLabel(shared->unit);
                                     }
                                   });
                                 })
        ->Iterations(1)
        ->UseManualTime();
  };
  register_pass(shared->ours);
  for (const contender& other : shared->others) register_pass(other);
}

int run_comparisons(int& argc, char** argv, const std::function<void()>& register_all) {
  take_options(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const std::string filter = benchmark::GetBenchmarkFilter();
  try {
    register_all();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
  table_reporter table;
  benchmark::RunSpecifiedBenchmarks(&table, filter.empty() || filter == "." ? "^ratio/" : filter);
  benchmark::Shutdown();
  return table.failed() ? 1 : 0;
}

}  // namespace ucx::benchmarks
