// Tensors as arguments and results of calls, between two simulated processes.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/simulated/simulated_messages.hpp"
#include "ucx/rpc.hpp"

namespace ucx::calls {
namespace {

using numbers = std::vector<std::uint64_t>;

std::vector<double> counted(std::size_t count) {
  std::vector<double> made(count);
  std::iota(made.begin(), made.end(), 0.0);
  return made;
}

class CallTensor : public ::testing::Test {
 protected:
  CallTensor() {
    calls_.add("sum", [this](const tensor_view& all) {
      got_ = all;
      const auto each = all.elements<double>();
      return std::accumulate(each.begin(), each.end(), 0.0);
    });
    calls_.add("layout", [](const tensor_view& all) { return std::pair(all.shape, all.strides); });
    calls_.add("half", [](tensor all) {
      all.shape[0] /= 2;
      return all;
    });
    calls_.add("later", [](tensor all) -> call_task<tensor> { co_return std::move(all); });
    calls_.add_dynamic("count", "(tensor)->u64",
                       [](call_context&, call_reader& from, call_writer& to) {
                         from.list();
                         const std::uint64_t type = from.unsigned_integer();
                         std::uint64_t count = 1;
                         for (std::size_t left = from.list(); left > 0; --left) {
                           count *= from.unsigned_integer();
                         }
                         for (std::size_t left = from.list(); left > 0; --left) from.skip();
                         to.unsigned_integer(type == 12 ? count * from.memory().size() : 0);
                       });
    serves_ = call_server(both_.receiver(), calls_);
  }
  /// Returns the outcome of a call whose tensor is written value by value.
  std::error_code outcome_of(const char* name, std::uint64_t type, const numbers& shape,
                             const numbers& strides, std::size_t size) {
    const std::vector<std::byte> memory(size);
    call_writer arguments;
    arguments.list(4).unsigned_integer(type);
    for (const numbers* each : {&shape, &strides}) {
      arguments.list(each->size());
      for (const std::uint64_t number : *each) arguments.unsigned_integer(number);
    }
    arguments.memory(memory);
    const auto types = std::string(name) == "sum" ? "(tensor)->f64" : "(tensor)->tensor";
    auto asked = peer_.start_dynamic_call({name, types}, arguments);
    std::error_code ec;
    asked.result(ec);
    return ec;
  }

  test::simulated_messages both_;
  tensor_view got_;
  call_table calls_;
  call_server serves_;
  call_channel peer_{both_.sender};
};

TEST_F(CallTensor, HasItsTypeShapeAndElements) {
  for (const std::size_t rows : {3U, 300U}) {
    const std::vector<double> all = counted(rows * 400);
    const auto sent = tensor_view::of(std::span<const double>(all), {rows, 400});
    EXPECT_EQ(peer_.call<double>("sum", sent), std::accumulate(all.begin(), all.end(), 0.0));
    EXPECT_EQ(got_.type, element_type::f64);
    EXPECT_EQ(got_.shape, (numbers{rows, 400}));
    EXPECT_EQ(got_.place, memory_place());
  }
}

TEST_F(CallTensor, KeepsItsStrides) {
  const std::vector<float> all(100);
  auto sent = tensor_view::of(std::span<const float>(all), {4, 5});
  sent.strides = {20, 2};
  using found = std::pair<numbers, numbers>;
  EXPECT_EQ(peer_.call<found>("layout", sent), found(sent.shape, sent.strides));
  std::error_code ec;
  EXPECT_TRUE(sent.elements<float>(ec).empty());
  EXPECT_EQ(ec, errc::invalid_argument) << "it has gaps";
}

TEST_F(CallTensor, IsAResultThatOwnsItsMemory) {
  const std::vector<double> all = counted(60'000);
  const auto sent = tensor_view::of(std::span<const double>(all), {200, 300});
  for (const auto& [name, rows] : {std::pair("half", 100U), std::pair("later", 200U)}) {
    const tensor came = peer_.call<tensor>(name, sent);
    EXPECT_EQ(came.shape, (numbers{rows, 300}));
    const tensor_view seen = came.view();
    const auto each = seen.elements<double>();
    EXPECT_TRUE(std::equal(each.begin(), each.end(), all.begin())) << name;
    EXPECT_EQ(each.size(), rows * 300U);
  }
}

TEST_F(CallTensor, IsReadWithoutTypes) {
  const std::vector<double> all(6);
  const auto sent = tensor_view::of(std::span<const double>(all), {2, 3});
  EXPECT_EQ(peer_.call<std::uint64_t>("count", sent), 6U * 48U);
}

TEST_F(CallTensor, HasAnExtent) {
  constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ((tensor_layout{element_type::i16, {}, {}}.extent()), 2U) << "one element";
  EXPECT_EQ((tensor_layout{element_type::f64, {2, 3}, {}}.extent()), 48U);
  EXPECT_EQ((tensor_layout{element_type::f64, {2, 3}, {10, 1}}.extent()), 104U);
  EXPECT_EQ((tensor_layout{element_type::f64, {2, 3}, {0, 0}}.extent()), 8U);
  EXPECT_EQ((tensor_layout{element_type::f64, {2, 0, 3}, {}}.extent()), 0U);
  EXPECT_EQ((tensor_layout{element_type::f64, {2, 3}, {1}}.extent()), std::nullopt);
  EXPECT_EQ((tensor_layout{element_type::u8, {huge, 1}, {}}.extent()), std::nullopt);
  EXPECT_EQ((tensor_layout{element_type::u8, {1U << 31U, 1U << 31U, 4}, {}}.extent()),
            std::nullopt);
  EXPECT_EQ((tensor_layout{element_type::u8, {3}, {huge}}.extent()), std::nullopt);
  EXPECT_EQ((tensor_layout{element_type::c128, {huge >> 1U}, {}}.extent()), std::nullopt);
  constexpr std::uint64_t wraps = std::uint64_t{1} << 61U;  // times 8 bytes is 0
  EXPECT_EQ((tensor_layout{element_type::f64, {wraps, 0}, {}}.extent()), std::nullopt);
  EXPECT_EQ((tensor_layout{element_type::f64, {0, wraps}, {}}.extent()), std::nullopt);
  EXPECT_EQ((tensor_layout{element_type::f64, {wraps + 1, 0}, {1, 1}}.extent()), std::nullopt);
  EXPECT_EQ((tensor_layout{element_type::u16, {2 * wraps}, {0}}.extent()), std::nullopt);
  EXPECT_EQ((tensor_layout{element_type::u16, {wraps, 0}, {}}.extent()), 0U);
  EXPECT_EQ((tensor_layout{element_type::u8, numbers(33, 1), {}}.extent()), std::nullopt);
  EXPECT_EQ((tensor_layout{element_type::u8, numbers(32, 1), {}}.extent()), 1U);
}

TEST_F(CallTensor, IsComparedWithItsMemoryAtBothSides) {
  const std::vector<double> all(6);
  auto sent = tensor_view::of(std::span<const double>(all), {2, 4});
  auto asked = peer_.start_call<double>("sum", sent);
  std::error_code ec;
  asked.result(ec);
  EXPECT_EQ(ec, errc::invalid_argument) << "the request tells it";
  constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  for (const char* name : {"sum", "half"}) {
    EXPECT_EQ(outcome_of(name, 12, {2, 3}, {}, 48), std::error_code()) << name;
    EXPECT_EQ(outcome_of(name, 12, {2, 3}, {}, 47), errc::protocol_error) << name;
    EXPECT_EQ(outcome_of(name, 15, {2, 3}, {}, 480), errc::protocol_error) << name;
    EXPECT_EQ(outcome_of(name, 12, {2, 3}, {3}, 48), errc::protocol_error) << name;
    EXPECT_EQ(outcome_of(name, 12, {2, 3}, {3, 2}, 48), errc::protocol_error) << name;
    EXPECT_EQ(outcome_of(name, 12, {huge, huge}, {}, 48), errc::protocol_error) << name;
    EXPECT_EQ(outcome_of(name, 12, {0, 3}, {}, 0), std::error_code()) << name;
    for (const std::uint64_t wraps : {huge / 8 + 1, huge / 8 + 2}) {
      EXPECT_EQ(outcome_of(name, 12, {wraps, 0}, {}, 0), errc::protocol_error) << name;
      EXPECT_EQ(outcome_of(name, 12, {0, wraps}, {}, 48), errc::protocol_error) << name;
      EXPECT_EQ(outcome_of(name, 12, {wraps}, {0}, 48), errc::protocol_error) << name;
    }
    EXPECT_EQ(outcome_of(name, 12, numbers(33, 1), {}, 48), errc::protocol_error) << name;
  }
}

TEST_F(CallTensor, OfOtherElementsIsRefusedByWhatReadsIt) {
  const std::vector<float> all(6);
  auto asked =
      peer_.start_call<double>("sum", tensor_view::of(std::span<const float>(all), {2, 3}));
  std::error_code ec;
  asked.result(ec);
  EXPECT_EQ(ec, errc::call_failed);
  EXPECT_EQ(asked.cause(), errc::invalid_argument);
}

}  // namespace
}  // namespace ucx::calls
