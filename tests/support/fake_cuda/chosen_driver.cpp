// The program that this is linked into uses the pretended driver: chosen before anything of the
// library's looks for one. What fails says in which order it ran.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

namespace {

class teller_of_seeds final : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    const char* const seed = std::getenv("UCXIO_FAKE_CUDA_SEED");
    if (!result.failed() || seed == nullptr) return;
    std::cout << "UCXIO_FAKE_CUDA_SEED=" << seed << '\n';
  }
};

[[maybe_unused]] const int chosen = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new teller_of_seeds);
  return ::setenv("UCXIO_CUDA_DRIVER", FAKE_CUDA, 1);
}();

}  // namespace
