#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "support/bytes/hex.hpp"
#include "unit/call/call_examples.hpp"

namespace ucx::calls {
namespace {

using test::from_hex;

template <class T>
std::string described() {
  std::string text;
  detail::call_type<T>::describe(text);
  return text;
}

template <class T>
std::vector<std::byte> written(const T& value) {
  call_writer writer;
  detail::call_type<T>::write(writer, value);
  const auto bytes = writer.written();
  return {bytes.begin(), bytes.end()};
}

template <class T>
std::optional<T> read_as(const std::vector<std::byte>& bytes) {
  call_reader reader(bytes);
  T value = detail::call_type<T>::read(reader);
  std::error_code ec;
  reader.finish(ec);
  if (ec) return std::nullopt;
  return value;
}

/// Writes a value, and reads it whole, cut at each byte, and with each bit flipped.
template <class T>
void expect_same(const T& value) {
  const auto bytes = written(value);
  const std::optional<T> same = read_as<T>(bytes);
  EXPECT_TRUE(same && *same == value) << described<T>() << ": " << test::to_hex(bytes);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(read_as<T>({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}))
        << described<T>() << " of " << size << " bytes";
  }
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    auto flipped = bytes;
    flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto other = read_as<T>(flipped);
    EXPECT_FALSE(other && *other == value) << described<T>() << " with bit " << bit;
  }
}

template <class Integer>
void expect_same_integers() {
  using limits = std::numeric_limits<Integer>;
  for (const Integer each : {limits::min(), Integer{0}, Integer{100}, limits::max()}) {
    expect_same(each);
  }
}

TEST(CallTypes, ReadScalarsAsTheyWereWritten) {
  expect_same(true);
  expect_same(false);
  expect_same_integers<std::int8_t>();
  expect_same_integers<std::uint8_t>();
  expect_same_integers<std::int16_t>();
  expect_same_integers<std::uint16_t>();
  expect_same_integers<std::int32_t>();
  expect_same_integers<std::uint32_t>();
  expect_same_integers<std::int64_t>();
  expect_same_integers<std::uint64_t>();
  expect_same_integers<long long>();
  expect_same(0.25F);
  expect_same(-1e300);
  expect_same(std::string("grün"));
  expect_same(std::string_view("view"));
  expect_same(std::string(300, 'x'));
  expect_same(from_hex("0001ff"));
}

TEST(CallTypes, ReadContainersAsTheyWereWritten) {
  expect_same(std::vector<double>{1.5, -2});
  expect_same(std::vector<bool>{true, false, true});
  expect_same(std::vector<std::string>{"a", "", "c"});
  expect_same(std::vector<std::vector<std::int32_t>>{{1}, {}, {2, 3}});
  expect_same(std::array<std::int16_t, 3>{1, -2, 300});
  expect_same(std::array<std::byte, 2>{std::byte{1}, std::byte{200}});
  expect_same(std::optional<std::int32_t>(7));
  expect_same(std::optional<std::int32_t>());
  expect_same(std::pair<std::string, double>("a", 1));
  expect_same(std::tuple<bool, std::int8_t, std::string>(true, -1, "z"));
  expect_same(std::tuple<std::tuple<std::int8_t>>(std::tuple<std::int8_t>(3)));
  expect_same(std::map<std::string, std::vector<std::int32_t>>{{"a", {1, 2}}, {"b", {}}});
  expect_same(std::map<std::int32_t, std::optional<bool>>{{-1, true}, {5, {}}});
}

TEST(CallTypes, ReadRecordsAndEnumerationsAsTheyWereWritten) {
  expect_same(colour::green);
  expect_same(level::low);
  expect_same(point{1, -2});
  expect_same(shape{"s", {{1, 2}, {3, 4}}, colour::red});
  expect_same(std::map<colour, shape>{{colour::red, {}}});
  EXPECT_EQ(read_as<colour>(from_hex("09")), static_cast<colour>(9)) << "passed on as its number";
}

TEST(CallTypes, AreDescribedByTheirWireTypes) {
  EXPECT_EQ(described<long>(), described<std::int64_t>());
  EXPECT_EQ(described<unsigned char>(), "u8");
  EXPECT_EQ(described<colour>(), "u8");
  EXPECT_EQ(described<level>(), "i32");
  EXPECT_EQ(described<std::string_view>(), "text");
  EXPECT_EQ(described<std::vector<std::byte>>(), "bytes");
  EXPECT_EQ((described<std::array<std::byte, 16>>()), "array<u8,16>");
  EXPECT_EQ((described<std::pair<bool, float>>()), "tuple<bool,f32>");
  EXPECT_EQ((described<std::map<colour, std::optional<point>>>()),
            "map<u8,optional<point{x:f64,y:f64}>>");
  EXPECT_EQ(described<shape>(),
            "shape{name:text,corners:list<point{x:f64,y:f64}>,fill:optional<u8>}");
}

TEST(CallTypes, KnowTheirDepthAndWhetherTheyBorrow) {
  EXPECT_EQ(detail::call_type<int>::depth, 0U);
  EXPECT_EQ(detail::call_type<std::optional<int>>::depth, 0U);
  EXPECT_EQ(detail::call_type<shape>::depth, 3U);
  EXPECT_EQ((detail::call_type<std::map<int, std::tuple<int, std::vector<int>>>>::depth), 3U);
  EXPECT_FALSE(detail::call_type<shape>::borrows);
  EXPECT_TRUE((detail::call_type<std::map<int, std::tuple<int, std::string_view>>>::borrows));
}

TEST(CallTypes, RefuseIntegersThatDoNotFit) {
  EXPECT_FALSE(read_as<std::int8_t>(written(std::int32_t{128})));
  EXPECT_FALSE(read_as<std::uint8_t>(written(std::int32_t{-1})));
  EXPECT_FALSE(read_as<std::int64_t>(written(~std::uint64_t{0})));
  EXPECT_FALSE(read_as<colour>(written(256)));
  EXPECT_EQ(read_as<std::int8_t>(written(std::uint64_t{127})), std::int8_t{127});
}

TEST(CallTypes, RefuseListsOfAnotherLength) {
  const auto two = written(std::vector<std::int32_t>{1, 2});
  EXPECT_FALSE((read_as<std::array<std::int32_t, 3>>(two)));
  EXPECT_FALSE((read_as<std::array<std::int32_t, 1>>(two)));
  EXPECT_FALSE((read_as<std::tuple<int, int, int>>(two)));
  EXPECT_FALSE(read_as<point>(written(std::vector<double>{1, 2, 3})));
  EXPECT_TRUE((read_as<std::pair<int, int>>(two)));
}

TEST(CallTypes, RefuseMapsWithAKeyTwice) {
  EXPECT_FALSE((read_as<std::map<std::int32_t, std::int32_t>>(from_hex("8201020103"))));
  EXPECT_TRUE((read_as<std::map<std::int32_t, std::int32_t>>(from_hex("8202020103"))));
}

TEST(CallTypes, RefuseFewBytesThatStandForMuchMemory) {
  // A nil of one byte is an object of 8 KB.
  using large = std::optional<std::array<std::uint64_t, 1000>>;
  call_writer writer;
  const std::size_t count = call_reader::max_memory / sizeof(large) + 1;
  writer.list(count);
  for (std::size_t i = 0; i < count; ++i) writer.nil();
  const auto bytes = writer.written();
  call_reader reader(bytes);
  EXPECT_TRUE(detail::call_type<std::vector<large>>::read(reader).empty());
  EXPECT_NE(reader.why().find("64 MiB"), std::string::npos) << reader.why();

  using pairs = std::map<std::int32_t, large>;
  call_writer map;
  map.map(count);
  for (std::size_t i = 0; i < count; ++i) map.unsigned_integer(i).nil();
  call_reader from(map.written());
  EXPECT_TRUE(detail::call_type<pairs>::read(from).empty());
  EXPECT_FALSE(from.ok());
}

}  // namespace
}  // namespace ucx::calls
