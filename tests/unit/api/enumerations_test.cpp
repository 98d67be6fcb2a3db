// Names of enumerators, as users print them.
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/huge_pages.hpp"
#include "ucx/log.hpp"
#include "ucx/pipe_options.hpp"
#include "ucx/way.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

template <class T>
std::string printed(T value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TEST(Enumerations, PrintTheNamesOfTheirEnumerators) {
  EXPECT_EQ(printed(progress_mode::sleeping_thread), "sleeping_thread");
  EXPECT_EQ(printed(close_mode::abort), "abort");
  EXPECT_EQ(printed(way::cuda_ipc), "cuda_ipc");
  EXPECT_EQ(printed(slow_reader::drop), "drop");
  EXPECT_EQ(printed(log_level::trace), "trace");
  EXPECT_EQ(printed(huge_pages::collapse), "collapse");
}

TEST(Enumerations, PrintAllFeaturesOfACombination) {
  EXPECT_EQ(printed(feature::none), "none");
  EXPECT_EQ(printed(feature::am), "am");
  EXPECT_EQ(printed(feature::rma | feature::stream), "rma|stream");
}

TEST(Enumerations, NameEachErrorOnce) {
  std::set<std::string> names;
  int count = 0;
  while (to_string(static_cast<errc>(count + 1)) != "unknown") {
    names.insert(printed(static_cast<errc>(++count)));
  }
  EXPECT_EQ(count, static_cast<int>(errc::forked_child));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(count));
}

TEST(Enumerations, PrintAValueThatIsNoEnumeratorAsUnknown) {
  EXPECT_EQ(printed(static_cast<progress_mode>(99)), "unknown");
}

}  // namespace
}  // namespace ucx::test
