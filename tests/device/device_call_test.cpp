// Memory of a device in calls: windows to it, and what goes beside them.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/kind_memory.hpp"
#include "support/transports/message_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_resources.hpp"
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

using constant = std::span<const std::byte>;

class DeviceCallMemory : public testing::TestWithParam<memory_kind> {
 protected:
  DeviceCallMemory() {
    auto made = std::make_shared<memory_resources>();
    made->add(memory_kind::cuda, device_);
    made->add(memory_kind::cuda_managed, managed_);
    resources_ = std::move(made);
    const auto noting = [this](constant bytes) { note(bytes); };
    calls_.add("as_sent", noting, {.memory = {.resources = resources_, .as_sent = true}});
    calls_.add("with_pools", noting, {.memory = {.resources = resources_}});
    calls_.add("on_device", noting,
               {.memory = {.resources = resources_, .kind = memory_kind::cuda}});
    calls_.add("on_host", noting);
    calls_.add("give", [this] { return buffer(source_.bytes(), [](std::span<std::byte>) {}); });
  }
  void note(constant bytes) {
    landed_ = place_of(bytes.data()).kind;
    cuda_program::use(0);  // on the worker's thread, for this look alone
    is_whole_ = holds_pattern(cuda_program::content(bytes), 1);
    CUctx_st* used = nullptr;
    ASSERT_EQ(cuCtxPopCurrent_v2(&used), 0);
  }
  std::error_code outcome(const request& call) {
    EXPECT_TRUE(both_.until([&] { return call.done(); }));
    return call.error();
  }
  /// Memory of the host that the driver knows is as any of the host to a peer.
  memory_kind told() const {
    return GetParam() == memory_kind::cuda_pinned ? memory_kind::host : GetParam();
  }
  bool is_of_device() const { return is_of_driver(GetParam()); }

  const cuda_program program_;
  memory_pool device_{memory_place{memory_kind::cuda, 0}};
  memory_pool managed_{memory_place{memory_kind::cuda_managed, 0}};
  std::shared_ptr<const memory_resources> resources_;
  kind_memory source_{GetParam(), 300'000, 1};
  memory_kind landed_ = memory_kind::other;
  bool is_whole_ = false;
  message_pair both_{message_pair_options{}};
  call_table calls_;
  call_server serves_{both_.receiver(), calls_};
  call_channel peer_{*both_.sender};
};

TEST_P(DeviceCallMemory, LandsInThatOfTheFunctionBeforeItRuns) {
  for (const auto& [name, kind] :
       {std::pair("as_sent", told()), std::pair("with_pools", memory_kind::host),
        std::pair("on_device", memory_kind::cuda), std::pair("on_host", memory_kind::host)}) {
    landed_ = memory_kind::other;
    is_whole_ = false;
    EXPECT_EQ(outcome(peer_.start_call<void>(name, constant(source_.bytes()))), std::error_code());
    EXPECT_EQ(landed_, kind) << name;
    EXPECT_TRUE(is_whole_) << name;
  }
}

TEST_P(DeviceCallMemory, IsCopiedOnceOnEachSide) {
  const copied_bytes copied;
  EXPECT_EQ(outcome(peer_.start_call<void>("as_sent", constant(source_.bytes()))),
            std::error_code());
  const std::size_t moved = is_of_device() ? source_.bytes().size() : 0;
  EXPECT_EQ(copied.from_device(), 2 * moved) << "the function looks at it, too";
  EXPECT_EQ(copied.to_device(), moved);
}

TEST_P(DeviceCallMemory, OfAResultLandsInThatOfTheCaller) {
  const call_options options{.memory = {.resources = resources_, .as_sent = true}};
  auto given = peer_.start_call<buffer>(options, "give");
  ASSERT_EQ(outcome(given), std::error_code());
  const buffer came = given.result();
  EXPECT_EQ(place_of(came.data()).kind, told());
  EXPECT_TRUE(holds_pattern(cuda_program::content(came.bytes()), 1));
}

TEST_P(DeviceCallMemory, OfATensorTellsWhereItLies) {
  calls_.add("place", [](const tensor_view& all) { return std::string(to_string(all.place.kind)); },
             {.memory = {.resources = resources_, .as_sent = true}});
  tensor_view sent;
  sent.type = element_type::u8;
  sent.shape = {300, 1000};
  sent.bytes = source_.bytes();
  auto asked = peer_.start_call<std::string>("place", sent);
  ASSERT_EQ(outcome(asked), std::error_code());
  EXPECT_EQ(asked.result(), to_string(told()));
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceCallMemory, testing::ValuesIn(every_kind), name_of_kind);

}  // namespace
}  // namespace ucx::test
