#include "wire/introduction.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "wire/wire.hpp"

namespace ucx::detail {
namespace {

introduction sample_introduction() {
  introduction made;
  made.identity = 0x1122334455667788;
  made.features = feature::am | feature::tag;
  made.borrows = true;
  made.fetches = true;
  made.lends = true;
  made.takes_files = true;
  made.unique = true;
  made.segment = 1052672;
  made.largest_eager = 524288;
  made.largest_header = 8139;
  made.name = "node 7";
  made.info = {std::byte{1}, std::byte{0}, std::byte{255}};
  made.words = "no";
  return made;
}

TEST(Introduction, ComesBackAsItWasWritten) {
  const auto read = decode_introduction(sample_introduction().encode());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->identity, sample_introduction().identity);
  EXPECT_EQ(read->features, sample_introduction().features);
  EXPECT_TRUE(read->borrows);
  EXPECT_TRUE(read->fetches);
  EXPECT_TRUE(read->lends);
  EXPECT_TRUE(read->takes_files);
  EXPECT_TRUE(read->unique);
  EXPECT_EQ(read->segment, sample_introduction().segment);
  EXPECT_EQ(read->largest_eager, sample_introduction().largest_eager);
  EXPECT_EQ(read->largest_header, sample_introduction().largest_header);
  EXPECT_EQ(read->name, sample_introduction().name);
  EXPECT_EQ(read->info, sample_introduction().info);
  EXPECT_EQ(read->words, sample_introduction().words);
}

TEST(Introduction, OfNobodySaysNothing) {
  const auto read = decode_introduction({});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->identity, 0U);
  EXPECT_TRUE(read->info.empty());
}

TEST(Introduction, OfAnotherVersionSaysNothing) {
  wire_writer writer;
  writer.put(std::as_bytes(std::span(introduction::letters)));
  writer.put(std::uint16_t{2});
  writer.put(std::uint16_t{0});
  writer.put(std::uint32_t{23});
  writer.put(std::as_bytes(std::span(std::string_view("new"))));
  writer.put(checksum(writer.bytes()));
  const auto read = decode_introduction(writer.bytes());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->identity, 0U);
}

TEST(Introduction, RefusesWhatIsCutOffOrChanged) {
  const std::vector<std::byte> wire = sample_introduction().encode();
  for (std::size_t length = 1; length < wire.size(); ++length) {
    EXPECT_FALSE(decode_introduction(std::span(wire).first(length))) << length;
  }
  for (std::size_t bit = 0; bit < wire.size() * 8; ++bit) {
    std::vector<std::byte> changed = wire;
    changed[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(decode_introduction(changed)) << bit;
  }
}

/// An introduction whose bytes a peer chose: only the checksum is right.
std::vector<std::byte> with_body(const wire_writer& body) {
  wire_writer writer = envelope::begin(introduction::letters);
  writer.put(const_cast<wire_writer&>(body).bytes());
  return envelope::end(std::move(writer));
}

TEST(Introduction, RefusesWhatBreaksARule) {
  const auto body = [](std::uint32_t flags, std::size_t info, std::size_t more) {
    wire_writer writer;
    writer.put(std::uint64_t{1});
    writer.put(std::uint32_t{3});
    writer.put(flags);
    for (int i = 0; i < 3; ++i) writer.put(std::uint64_t{0});
    writer.put(std::uint16_t{0});
    writer.put(static_cast<std::uint16_t>(info));
    writer.put(std::vector<std::byte>(info));
    writer.put(std::uint16_t{0});
    writer.put(std::vector<std::byte>(more));
    return with_body(writer);
  };
  EXPECT_TRUE(decode_introduction(body(0, introduction::most_info, 0)));
  EXPECT_FALSE(decode_introduction(body(0, introduction::most_info + 1, 0))) << "too much";
  EXPECT_FALSE(decode_introduction(body(2, 0, 0))) << "an unknown flag";
  EXPECT_FALSE(decode_introduction(body(0, 0, 1))) << "left over";
}

TEST(Introduction, TextsOfPeersAreFitToBeShown) {
  introduction hostile;
  hostile.name = "\x1b[31mred\nline\x7f";
  hostile.words = std::string(1000, 'x');
  const auto read = decode_introduction(hostile.encode());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name, "?[31mred?line?");
  EXPECT_EQ(read->words.size(), introduction::most_words);
}

TEST(Greeting, IsAnyNumberOfEnvelopes) {
  const std::vector<std::byte> intro = sample_introduction().encode();
  wire_writer unknown = envelope::begin("UX??");
  unknown.put(std::uint64_t{7});
  const std::vector<std::byte> strange = envelope::end(std::move(unknown));
  const std::vector<std::byte> address = envelope::end(envelope::begin(worker_address_letters));
  std::vector<std::byte> all;
  const process_identity whose{12, 4026531836, 99};
  const std::vector<std::byte> process = whose.encode();
  const std::vector<std::byte> host = encode_host(host_identity());
  for (const auto* each : {&strange, &address, &intro, &host, &process}) {
    all.insert(all.end(), each->begin(), each->end());
  }
  const greeting read = read_greeting(all);
  EXPECT_TRUE(read.intact);
  EXPECT_EQ(read.address.size(), address.size());
  EXPECT_TRUE(decode_introduction(read.introduction));
  EXPECT_EQ(decode_process_identity(read.process), whose);
  EXPECT_EQ(decode_host(read.host), host_identity());
  EXPECT_TRUE(read_greeting({}).intact);
  for (std::size_t length = 1; length < all.size(); ++length) {
    if (length == strange.size() || length == strange.size() + address.size()) continue;
    if (length == all.size() - process.size()) continue;
    if (length == all.size() - process.size() - host.size()) continue;
    EXPECT_FALSE(read_greeting(std::span(all).first(length)).intact) << length;
  }
}

TEST(Greeting, IsNotFollowedBeyondItsEnd) {
  std::vector<std::byte> wire = sample_introduction().encode();
  for (const unsigned claimed : {0U, 1U, 19U, 4096U, 0xffffffffU}) {
    for (unsigned i = 0; i < 4; ++i) {
      wire[8 + i] = static_cast<std::byte>((claimed >> (8 * i)) & 0xffU);
    }
    EXPECT_FALSE(read_greeting(wire).intact) << claimed;
  }
}

}  // namespace
}  // namespace ucx::detail
