// Devices of Boost.Iostreams that read into, and write out of, the memory of another device.
#include <gtest/gtest.h>

#include <cstddef>
#include <ios>
#include <string>

#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/kind_memory.hpp"
#include "support/files/temporary_file.hpp"
#include "support/transports/connected_pair.hpp"
#include "ucx/boost_device.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"

namespace ucx::test {
namespace {

constexpr std::streamsize all = 2 * mib;

class DeviceInBoost : public testing::TestWithParam<memory_kind> {
 protected:
  /// Writes memory of the kind by `sink`, and reads it back by `source`.
  template <class Sink, class Source>
  void pass(Sink sink, Source source) {
    kind_memory from(GetParam(), 2 * mib, 3);
    kind_memory into(GetParam(), 2 * mib);
    EXPECT_EQ(sink.write(from.characters(), 10), 10);
    EXPECT_EQ(sink.write(from.characters() + 10, all - 10), all - 10);
    sink.close();
    EXPECT_EQ(source.read(into.characters(), 10), 10);
    std::streamsize done = 10;
    while (done < all) {
      const std::streamsize got = source.read(into.characters() + done, all - done);
      ASSERT_GT(got, 0);
      done += got;
    }
    EXPECT_TRUE(into.holds(3));
    fake_cuda_fail("copy", 0, 1, 719);
    source.seek(0, std::ios::beg);
    if (is_of_driver(GetParam())) {
      EXPECT_THROW(source.read(into.characters(), all), error);
      EXPECT_EQ(source.error(), errc::io_error);
    }
    source.close();
  }

  const cuda_program program_;
};

TEST_P(DeviceInBoost, GoesThroughAPeersRegion) {
  connected_pair pair;
  const memory_region exposed = pair.allocate(2 * mib);
  const remote_region region = pair.open(exposed);
  pass(remote_sink(region), remote_source(region));
}

TEST_P(DeviceInBoost, GoesThroughALocalFile) {
  const temporary_file file;
  pass(remote_sink(file.path().string()), remote_source(file.path().string()));
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceInBoost, testing::ValuesIn(every_kind), name_of_kind);

}  // namespace
}  // namespace ucx::test
