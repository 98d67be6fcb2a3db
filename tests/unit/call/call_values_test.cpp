#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <msgpack.hpp>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "support/bytes/hex.hpp"
#include "ucx/call_reader.hpp"
#include "ucx/call_writer.hpp"

namespace ucx::calls {
namespace {

using test::from_hex;
using test::to_hex;

constexpr std::size_t one_mib = call_writer::max_size;

std::error_code outcome_of_writing(const call_writer& writer) {
  std::error_code ec;
  const auto bytes = writer.written(ec);
  EXPECT_EQ(bytes.empty(), ec || writer.count() == 0);
  return ec;
}

std::error_code outcome_of_reading(call_reader& reader) {
  std::error_code ec;
  reader.finish(ec);
  EXPECT_EQ(reader.ok(), !ec);
  return ec;
}

/// Every kind of value, within each other.
call_writer all_values() {
  call_writer made;
  made.nil().boolean(true).integer(-70'000).unsigned_integer(300).float32(0.5F).float64(-2.25);
  made.text("grün").bytes(from_hex("00ff"));
  made.list(2).list(1).integer(-1).map(1).text("k").list(0);
  made.map(2).integer(1).boolean(false).integer(2).nil();
  return made;
}

/// Reads what `all_values()` wrote. Returns whether all of it was there.
bool read_all_values(call_reader& from) {
  bool same = from.nil() && from.boolean();
  same = same && from.integer() == -70'000 && from.unsigned_integer() == 300;
  same = same && from.float32() == 0.5F && from.float64() == -2.25 && from.text() == "grün";
  same = same && to_hex(from.bytes()) == "00ff";
  same = same && from.list() == 2 && from.list() == 1 && from.integer() == -1;
  same = same && from.map() == 1 && from.text() == "k" && from.list() == 0 && from.ok();
  same = same && from.map() == 2 && from.integer() == 1 && !from.boolean();
  return same && from.integer() == 2 && from.nil() && !outcome_of_reading(from);
}

TEST(CallWriter, WritesMessagePackInItsShortestForms) {
  struct {
    void (*write)(call_writer&);
    std::string_view hex;
  } const cases[]{
      {[](call_writer& to) { to.nil(); }, "c0"},
      {[](call_writer& to) { to.boolean(false).boolean(true); }, "c2c3"},
      {[](call_writer& to) { to.integer(127).integer(128).integer(-32); }, "7fcc80e0"},
      {[](call_writer& to) { to.integer(-33).integer(-128).integer(-129); }, "d0dfd080d1ff7f"},
      {[](call_writer& to) { to.integer(65'536).integer(-32'769); }, "ce00010000d2ffff7fff"},
      {[](call_writer& to) { to.unsigned_integer(~std::uint64_t{0}); }, "cfffffffffffffffff"},
      {[](call_writer& to) { to.float32(1).float64(1); }, "ca3f800000cb3ff0000000000000"},
      {[](call_writer& to) { to.text("").text("ab"); }, "a0a26162"},
      {[](call_writer& to) { to.bytes({}); }, "c400"},
      {[](call_writer& to) { to.list(2).nil().list(0).map(1).nil().nil(); }, "92c09081c0c0"},
  };
  for (const auto& each : cases) {
    call_writer writer;
    each.write(writer);
    EXPECT_EQ(to_hex(writer.written()), each.hex);
  }
}

TEST(CallWriter, IsReadByAnotherReaderOfMessagePack) {
  const call_writer writer = all_values();
  const auto bytes = writer.written();
  const auto* data = reinterpret_cast<const char*>(bytes.data());
  std::size_t at = 0;
  std::size_t values = 0;
  while (at < bytes.size()) {
    msgpack::unpack(data, bytes.size(), at);
    ++values;
  }
  EXPECT_EQ(values, writer.count());
  EXPECT_EQ(values, 10U);
}

TEST(CallReader, ReadsWhatWasWritten) {
  const call_writer writer = all_values();
  call_reader reader(writer.written());
  EXPECT_TRUE(read_all_values(reader)) << reader.why();
}

TEST(CallReader, ReadsIntegersAtEachBoundary) {
  std::vector<std::int64_t> numbers{0, std::numeric_limits<std::int64_t>::min(),
                                    std::numeric_limits<std::int64_t>::max()};
  for (const int bits : {5, 7, 8, 15, 16, 31, 32, 62}) {
    for (const int off : {-1, 0, 1}) {
      numbers.push_back((std::int64_t{1} << bits) + off);
      numbers.push_back(-(std::int64_t{1} << bits) + off);
    }
  }
  for (const std::int64_t each : numbers) {
    call_writer writer;
    call_reader reader(writer.integer(each).written());
    EXPECT_EQ(reader.integer(), each);
    EXPECT_FALSE(outcome_of_reading(reader));
  }
}

TEST(CallReader, ReadsFloatsBitByBit) {
  const double odd[]{-0.0, std::numeric_limits<double>::infinity(),
                     std::numeric_limits<double>::denorm_min(), 0.1};
  for (const double each : odd) {
    call_writer writer;
    writer.float64(each).float32(static_cast<float>(each));
    call_reader reader(writer.written());
    const double read = reader.float64();
    EXPECT_EQ(read, each);
    EXPECT_EQ(std::signbit(read), std::signbit(each));
    EXPECT_EQ(reader.float32(), static_cast<float>(each));
  }
  call_writer writer;
  writer.float64(std::numeric_limits<double>::quiet_NaN());
  call_reader reader(writer.written());
  EXPECT_TRUE(std::isnan(reader.float64()));
}

TEST(CallReader, TakesLongFormsOfOtherWriters) {
  const auto bytes = from_hex(
      "d30000000000000001"
      "cf0000000000000002"
      "db0000000161"
      "c600000001ff"
      "dd0000000103"
      "df0000000104c0"
      "d1ffff");
  call_reader reader(bytes);
  EXPECT_EQ(reader.unsigned_integer(), 1U);
  EXPECT_EQ(reader.integer(), 2);
  EXPECT_EQ(reader.text(), "a");
  EXPECT_EQ(to_hex(reader.bytes()), "ff");
  EXPECT_EQ(reader.list(), 1U);
  EXPECT_EQ(reader.integer(), 3);
  EXPECT_EQ(reader.map(), 1U);
  EXPECT_EQ(reader.integer(), 4);
  EXPECT_TRUE(reader.nil());
  EXPECT_EQ(reader.integer(), -1);
  EXPECT_FALSE(outcome_of_reading(reader)) << reader.why();
}

TEST(CallReader, RefusesEachOtherType) {
  struct {
    std::string_view name;
    void (*read)(call_reader&);
  } const reads[]{
      {"nil",
       [](call_reader& from) {
         if (!from.nil()) from.fail("none");
       }},
      {"boolean", [](call_reader& from) { from.boolean(); }},
      {"integer", [](call_reader& from) { from.integer(); }},
      {"float32", [](call_reader& from) { from.float32(); }},
      {"float64", [](call_reader& from) { from.float64(); }},
      {"text", [](call_reader& from) { from.text(); }},
      {"bytes", [](call_reader& from) { from.bytes(); }},
      {"list", [](call_reader& from) { from.list(); }},
      {"map", [](call_reader& from) { from.map(); }},
  };
  const std::string_view values[]{"c0",   "c3",     "05", "ca00000000", "cb0000000000000000",
                                  "a161", "c40161", "90", "80"};
  for (std::size_t value = 0; value < std::size(values); ++value) {
    for (std::size_t read = 0; read < std::size(reads); ++read) {
      const auto bytes = from_hex(values[value]);
      call_reader reader(bytes);
      reads[read].read(reader);
      EXPECT_EQ(outcome_of_reading(reader),
                value == read ? std::error_code() : errc::protocol_error)
          << values[value] << " as " << reads[read].name;
    }
  }
}

TEST(CallReader, RefusesIntegersOutOfRange) {
  call_writer writer;
  writer.integer(200).unsigned_integer(~std::uint64_t{0}).integer(-1);
  const auto bytes = writer.written();
  call_reader small(bytes);
  EXPECT_EQ(small.integer(-128, 127), 0);
  EXPECT_FALSE(small.ok());
  call_reader large(bytes);
  large.skip();
  EXPECT_EQ(large.integer(), 0);
  EXPECT_NE(large.why().find("out of range"), std::string::npos) << large.why();
  call_reader negative(bytes);
  negative.skip();
  negative.skip();
  EXPECT_EQ(negative.unsigned_integer(), 0U);
  EXPECT_NE(negative.why().find("negative"), std::string::npos) << negative.why();
}

TEST(CallReader, SaysWhatIsWrongAndWhere) {
  const auto bytes = from_hex("05a161");
  call_reader reader(bytes);
  EXPECT_EQ(reader.integer(), 5);
  EXPECT_EQ(reader.list(), 0U);
  EXPECT_EQ(reader.why(), "at byte 1: a list is expected, and a text is there");
  EXPECT_EQ(reader.text(), "") << "it has failed for good";
  try {
    reader.finish();
    FAIL() << "it has failed";
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::protocol_error);
    EXPECT_NE(std::string(failed.what()).find("a list is expected"), std::string::npos);
  }
}

TEST(CallReader, RefusesValuesThatAreLeft) {
  const auto bytes = from_hex("0505");
  call_reader reader(bytes);
  EXPECT_EQ(reader.integer(), 5);
  EXPECT_EQ(outcome_of_reading(reader), errc::protocol_error);
}

TEST(CallReader, RefusesExtensionsAndTheUnusedByte) {
  for (const std::string_view hex : {"c1", "c70100ff", "d400ff", "d8", "c9ffffffff00"}) {
    const auto bytes = from_hex(hex);
    call_reader reader(bytes);
    reader.skip();
    EXPECT_EQ(outcome_of_reading(reader), errc::protocol_error) << hex;
  }
}

TEST(CallReader, RefusesTextThatIsNotUtf8) {
  for (const std::string_view hex : {"a1ff", "a2c080", "a3eda080"}) {
    const auto bytes = from_hex(hex);
    call_reader reader(bytes);
    EXPECT_EQ(reader.text(), "");
    EXPECT_EQ(outcome_of_reading(reader), errc::protocol_error) << hex;
  }
}

TEST(CallReader, ComparesLengthsWithWhatIsLeft) {
  // Texts, bytes, lists and maps that claim more than there is, up to the largest length.
  for (const std::string_view hex :
       {"a261", "d9ff61", "dbffffffff61", "c4ff", "c6ffffffff00", "9205", "ddffffffff05", "8105",
        "dfffffffff0505", "df8000000005", "dc0003c0c0"}) {
    const auto bytes = from_hex(hex);
    call_reader reader(bytes);
    reader.skip();
    EXPECT_FALSE(reader.ok()) << hex;
    EXPECT_EQ(outcome_of_reading(reader), errc::protocol_error) << hex;
  }
}

TEST(CallReader, ReturnsNoLengthThatIsNotThere) {
  const auto lists = from_hex("ddffffffff05");
  call_reader list(lists);
  EXPECT_EQ(list.list(), 0U);
  const auto maps = from_hex("dfffffffff0505");
  call_reader map(maps);
  EXPECT_EQ(map.map(), 0U);
  const auto texts = from_hex("dbffffffff61");
  call_reader text(texts);
  EXPECT_EQ(text.text(), "");
}

TEST(CallReader, CountsTheValuesOfListsAroundAList) {
  // The inner list's two values are there, but then the outer list's second one is not.
  const auto bytes = from_hex("92920101");
  call_reader reader(bytes);
  EXPECT_EQ(reader.list(), 2U);
  EXPECT_EQ(reader.list(), 0U) << "the caller takes no memory for them";
  EXPECT_EQ(outcome_of_reading(reader), errc::protocol_error);
}

TEST(CallReader, SkipsAnyValue) {
  const call_writer writer = all_values();
  call_reader reader(writer.written());
  for (std::size_t i = 0; i < writer.count(); ++i) reader.skip();
  EXPECT_FALSE(outcome_of_reading(reader)) << reader.why();

  call_reader within(writer.written());
  for (int i = 0; i < 8; ++i) within.skip();
  EXPECT_EQ(within.list(), 2U);
  within.skip();
  within.skip();
  EXPECT_EQ(within.map(), 2U);
  within.skip();
  EXPECT_FALSE(within.boolean());
  EXPECT_EQ(within.integer(), 2);
  EXPECT_TRUE(within.nil());
  EXPECT_FALSE(outcome_of_reading(within)) << within.why();
}

TEST(CallReader, BoundsTheMemoryOfItsValues) {
  call_reader reader({});
  EXPECT_TRUE(reader.claim(call_reader::max_memory / 16, 16));
  EXPECT_TRUE(reader.claim(0, 16));
  EXPECT_FALSE(reader.claim(1, 1));
  EXPECT_EQ(outcome_of_reading(reader), errc::protocol_error);
  call_reader other({});
  EXPECT_FALSE(other.claim(std::numeric_limits<std::size_t>::max(), 2)) << "no overflow";
}

TEST(CallReader, FailsWhereAListIsNotReadWhole) {
  const auto bytes = from_hex("92a161");
  call_reader reader(bytes);
  EXPECT_EQ(reader.list(), 2U);
  EXPECT_EQ(reader.text(), "a");
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(outcome_of_reading(reader), errc::protocol_error);
  EXPECT_NE(reader.why().find("than were read"), std::string::npos) << reader.why();
}

TEST(CallReader, FailsAtEachTruncation) {
  const call_writer writer = all_values();
  const auto bytes = writer.written();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<long>(size));
    call_reader reader(cut);
    EXPECT_FALSE(read_all_values(reader)) << size;
    call_reader skipping(cut);
    for (std::size_t i = 0; i < writer.count(); ++i) skipping.skip();
    EXPECT_EQ(outcome_of_reading(skipping), errc::protocol_error) << size;
  }
}

TEST(CallReader, TellsEachFlippedBit) {
  const call_writer writer = all_values();
  const auto intact = writer.written();
  for (std::size_t bit = 0; bit < 8 * intact.size(); ++bit) {
    std::vector<std::byte> bytes(intact.begin(), intact.end());
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    call_reader reader(bytes);
    EXPECT_FALSE(read_all_values(reader)) << "bit " << bit;
    call_reader skipping(bytes);
    for (std::size_t i = 0; i < 2 * bytes.size() && skipping.ok(); ++i) skipping.skip();
    EXPECT_EQ(outcome_of_reading(skipping), errc::protocol_error) << "more values than there are";
  }
}

TEST(CallWriter, HoldsItsLimitOfBytesExactly) {
  const std::string text(one_mib - 5, 'x');
  EXPECT_FALSE(outcome_of_writing(call_writer().text(text)));
  EXPECT_EQ(outcome_of_writing(call_writer().text(text + 'x')), errc::no_space);
  EXPECT_EQ(outcome_of_writing(call_writer().text(text).nil()), errc::no_space);
  const std::vector<std::byte> bytes(one_mib - 7);
  EXPECT_FALSE(outcome_of_writing(call_writer().bytes(bytes).integer(200)));
  EXPECT_EQ(outcome_of_writing(call_writer().bytes(bytes).integer(256)), errc::no_space);
  EXPECT_EQ(outcome_of_writing(call_writer().bytes(bytes).integer(-129)), errc::no_space);
  EXPECT_EQ(outcome_of_writing(call_writer().bytes(bytes).float32(1)), errc::no_space);
  EXPECT_EQ(outcome_of_writing(call_writer().bytes(bytes).boolean(true).float64(1)),
            errc::no_space);
  EXPECT_EQ(outcome_of_writing(call_writer().list(one_mib)), errc::no_space);
  EXPECT_EQ(outcome_of_writing(call_writer().map(one_mib / 2)), errc::no_space);
  EXPECT_EQ(outcome_of_writing(call_writer().map(std::numeric_limits<std::size_t>::max())),
            errc::no_space);
}

TEST(CallWriter, HoldsItsLimitOfDepth) {
  call_writer writer;
  std::string hex;
  for (std::size_t i = 0; i < call_writer::max_depth; ++i) {
    i % 2 == 0 ? writer.list(1) : writer.map(1).nil();
    hex += i % 2 == 0 ? "91" : "81c0";
  }
  call_writer deeper = writer;
  EXPECT_FALSE(outcome_of_writing(writer.nil()));
  EXPECT_EQ(outcome_of_writing(deeper.list(0)), errc::invalid_argument);

  const auto deepest = from_hex(hex + "c0");
  call_reader fits(deepest);
  fits.skip();
  EXPECT_FALSE(outcome_of_reading(fits));
  const auto too_deep = from_hex(hex + "90");
  call_reader reader(too_deep);
  reader.skip();
  EXPECT_EQ(outcome_of_reading(reader), errc::protocol_error);
  EXPECT_NE(reader.why().find("16"), std::string::npos) << reader.why();
}

TEST(CallWriter, RefusesTextThatIsNotUtf8) {
  EXPECT_EQ(outcome_of_writing(call_writer().text("\xff")), errc::invalid_argument);
}

TEST(CallWriter, RefusesListsThatAreNotFull) {
  EXPECT_EQ(outcome_of_writing(call_writer().list(2).nil()), errc::invalid_argument);
  EXPECT_EQ(outcome_of_writing(call_writer().list(1).map(1).nil()), errc::invalid_argument);
  EXPECT_FALSE(outcome_of_writing(call_writer().list(1).map(1).nil().nil()));
  EXPECT_THROW(call_writer().list(1).written(), error);
}

}  // namespace
}  // namespace ucx::calls
