// Windows of calls to memory of a device.
#include <gtest/gtest.h>

#include <cstdint>
#include <system_error>

#include "support/fake_cuda/kind_memory.hpp"
#include "support/transports/message_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/rpc.hpp"

namespace ucx::test {
namespace {

class DeviceWindow : public testing::TestWithParam<memory_kind> {
 protected:
  DeviceWindow() {
    calls_.add("count", [this](window<access::read> from) {
      has_run_ = true;
      return from.size();
    });
  }

  const cuda_program program_;
  message_pair both_{message_pair_options{}};
  bool has_run_ = false;
  call_table calls_;
  call_server serves_{both_.receiver(), calls_};
  call_channel peer_{*both_.sender};
};

/// The caller learns it, and the call is not sent.
TEST_P(DeviceWindow, IsRefusedUnlessItIsOfTheHost) {
  kind_memory source(GetParam(), 1000, 1);
  auto asked = peer_.start_call<std::uint64_t>("count", window<access::read>(source.bytes()));
  ASSERT_TRUE(both_.until([&] { return asked.done(); }));
  const bool is_of_host = GetParam() == memory_kind::host || GetParam() == memory_kind::cuda_pinned;
  EXPECT_EQ(asked.error(), is_of_host ? std::error_code() : make_error_code(errc::not_supported))
      << asked.description();
  EXPECT_EQ(has_run_, is_of_host);
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceWindow, testing::ValuesIn(every_kind), name_of_kind);

}  // namespace
}  // namespace ucx::test
