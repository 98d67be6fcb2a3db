#include "wire/frame.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <span>
#include <system_error>
#include <vector>

#include "ucx/error.hpp"
#include "wire/protocol.hpp"

namespace ucx::detail {
namespace {

frame sample() {
  frame made;
  made.code = opcode::data;
  made.status = 0x04030201;
  made.session = 0x1817161514131211;
  made.request = 0x2827262524232221;
  made.region = 0x3837363534333231;
  made.incarnation = 0x4847464544434241;
  made.generation = 0x5857565554535251;
  made.offset = 0x6867666564636261;
  made.length = 0x7877767574737271;
  return made;
}

frame::bytes encoded(const frame& from) {
  frame::bytes bytes;
  from.encode(bytes);
  return bytes;
}

void expect_equal(const frame& read, const frame& written) {
  EXPECT_EQ(read.version, protocol_version_number);
  EXPECT_EQ(read.code, written.code);
  EXPECT_EQ(read.status, written.status);
  EXPECT_EQ(read.session, written.session);
  EXPECT_EQ(read.request, written.request);
  EXPECT_EQ(read.region, written.region);
  EXPECT_EQ(read.incarnation, written.incarnation);
  EXPECT_EQ(read.generation, written.generation);
  EXPECT_EQ(read.offset, written.offset);
  EXPECT_EQ(read.length, written.length);
}

TEST(Frame, EncodesTheBytesOfTheDocument) {
  const std::initializer_list<unsigned> golden{
      'U',  'X',  1,    4,                             // magic, version, opcode
      0x01, 0x02, 0x03, 0x04,                          // status
      0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,  // session
      0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,  // request
      0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,  // region
      0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,  // incarnation
      0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58,  // generation
      0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68,  // offset
      0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78,  // length
  };
  const frame::bytes bytes = encoded(sample());
  ASSERT_EQ(golden.size(), frame::size);
  std::size_t at = 0;
  for (const unsigned expected : golden) {
    EXPECT_EQ(std::to_integer<unsigned>(bytes[at]), expected) << "at byte " << at;
    ++at;
  }
}

TEST(Frame, ReadsWhatItWrote) {
  for (unsigned code = 1; code <= 10; ++code) {
    frame written = sample();
    written.code = static_cast<opcode>(code);
    const auto read = decode_frame(encoded(written));
    ASSERT_TRUE(read) << "opcode " << code;
    expect_equal(*read, written);
  }
}

TEST(Frame, KeepsExtremeValues) {
  frame written;
  written.code = opcode::read;
  written.status = ~std::uint32_t{0};
  written.session = written.request = written.region = ~std::uint64_t{0};
  written.offset = std::uint64_t{1} << 63U;
  written.length = ~std::uint64_t{0};
  const auto read = decode_frame(encoded(written));
  ASSERT_TRUE(read);
  expect_equal(*read, written);
}

TEST(Frame, RefusesEveryTruncation) {
  const frame::bytes bytes = encoded(sample());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    // A copy of that length, so that a read past the end is seen by the address sanitizer.
    const std::vector<std::byte> cut(bytes.begin(),
                                     bytes.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_FALSE(decode_frame(cut)) << length << " bytes";
  }
  EXPECT_FALSE(decode_frame({}));
}

TEST(Frame, RefusesTrailingBytes) {
  const frame::bytes bytes = encoded(sample());
  for (const std::size_t more : {1U, 8U, 64U}) {
    std::vector<std::byte> longer(bytes.begin(), bytes.end());
    longer.resize(longer.size() + more);
    EXPECT_FALSE(decode_frame(longer)) << more << " more";
  }
}

TEST(Frame, FlippedBitIsRefusedOrReadAsWhatItSays) {
  const frame written = sample();
  const frame::bytes bytes = encoded(written);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    frame::bytes flipped = bytes;
    flipped[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto read = decode_frame(flipped);
    const std::size_t byte = bit / 8;
    if (byte < 2) {
      EXPECT_FALSE(read) << "magic, bit " << bit;
    } else if (byte == 2) {
      // Another version, or the version zero that nobody speaks.
      const auto version = std::to_integer<unsigned>(flipped[2]);
      ASSERT_EQ(read.has_value(), version != 0) << "bit " << bit;
      if (read) {
        EXPECT_EQ(read->version, version);
        EXPECT_EQ(read->session, written.session);
      }
    } else if (byte == 3) {
      const auto code = std::to_integer<unsigned>(flipped[3]);
      const bool known = (code >= 1 && code <= 11) || (code >= 32 && code <= 38);
      EXPECT_EQ(read.has_value(), known) << "opcode " << code;
    } else {
      ASSERT_TRUE(read) << "bit " << bit;
      EXPECT_EQ(encoded(*read), flipped) << "bit " << bit;
    }
  }
}

TEST(Frame, ReadsSessionOfAnotherVersionAndNothingElse) {
  for (unsigned version = 2; version < 256; ++version) {
    frame::bytes bytes = encoded(sample());
    bytes[2] = static_cast<std::byte>(version);
    const auto read = decode_frame(bytes);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->version, version);
    EXPECT_EQ(read->code, opcode::data);
    EXPECT_EQ(read->session, sample().session);
    EXPECT_EQ(read->request, 0U);
    EXPECT_EQ(read->region, 0U);
    EXPECT_EQ(read->offset, 0U);
    EXPECT_EQ(read->length, 0U);
  }
}

TEST(Frame, AnotherVersionMayHaveAnotherLength) {
  frame::bytes bytes = encoded(sample());
  bytes[2] = std::byte{2};
  for (std::size_t length = 0; length <= 128; ++length) {
    std::vector<std::byte> wire(bytes.begin(), bytes.end());
    wire.resize(length);
    EXPECT_EQ(decode_frame(wire).has_value(), length >= 16) << length << " bytes";
  }
}

TEST(Frame, SurvivesRandomBytes) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> wire(random() % 100);
    for (std::byte& each : wire) each = static_cast<std::byte>(random());
    if (wire.size() > 4 && round % 2 == 0) {
      wire[0] = std::byte{'U'};
      wire[1] = std::byte{'X'};
      wire[2] = static_cast<std::byte>(random() % 3);
      wire[3] = static_cast<std::byte>(random() % 12);
    }
    const auto read = decode_frame(wire);
    if (!read) continue;
    ASSERT_NE(read->version, 0U);
    if (read->version == protocol_version_number) {
      ASSERT_EQ(wire.size(), frame::size);
      const frame::bytes again = encoded(*read);
      ASSERT_TRUE(std::equal(again.begin(), again.end(), wire.begin()));
    }
  }
}

TEST(Frame, StatusOfNoErrorIsZero) {
  EXPECT_EQ(error_status({}), 0U);
  EXPECT_FALSE(status_error(0));
}

TEST(Frame, StatusNamesEveryErrc) {
  for (std::uint32_t value = 1; value <= static_cast<std::uint32_t>(last_errc); ++value) {
    const std::error_code ec = static_cast<errc>(value);
    EXPECT_EQ(error_status(ec), value);
    EXPECT_EQ(status_error(value), ec);
  }
}

TEST(Frame, UnknownStatusIsAProtocolError) {
  const std::uint32_t last = static_cast<std::uint32_t>(last_errc);
  for (const std::uint32_t value : {last + 1, 0x80000000U, 0xffffffffU}) {
    EXPECT_EQ(status_error(value), errc::protocol_error) << value;
  }
}

TEST(Frame, ForeignErrorIsToldAsUnexpected) {
  EXPECT_EQ(error_status(std::make_error_code(std::errc::not_enough_memory)),
            static_cast<std::uint32_t>(errc::unexpected));
}

}  // namespace
}  // namespace ucx::detail
