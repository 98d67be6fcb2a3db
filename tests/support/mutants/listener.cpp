// Writes to $UCXIO_MUTANTS_LOG, behind each case, its name and the numbers of the mutants that it
// came by, in any of its processes.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <fstream>

#include "ucxio_mutants.hpp"

namespace {

class listener : public ::testing::EmptyTestEventListener {
  // Not where a case starts: what prepares a suite counts for its first case.
  void OnTestSuiteStart(const ::testing::TestSuite&) override { forget(); }

  void OnTestEnd(const ::testing::TestInfo& info) override {
    std::ofstream log(std::getenv("UCXIO_MUTANTS_LOG"), std::ios::app);
    log << info.test_suite_name() << '.' << info.name() << '\t' << info.result()->elapsed_time();
    for (std::size_t number = 0; number < ucxio_mutants::map_size; ++number) {
      if (ucxio_mutants::chosen.reached[number].load() != 0) log << '\t' << number;
    }
    log << '\n';
    forget();
  }

  static void forget() {
    for (std::size_t number = 0; number < ucxio_mutants::map_size; ++number) {
      ucxio_mutants::chosen.reached[number].store(0);
    }
  }
};

const bool listens = [] {
  if (ucxio_mutants::chosen.reached == nullptr || std::getenv("UCXIO_MUTANTS_LOG") == nullptr)
    return false;
  ::testing::UnitTest::GetInstance()->listeners().Append(new listener);
  return true;
}();

}  // namespace
