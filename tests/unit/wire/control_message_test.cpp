#include "wire/control_message.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "support/basics/effort.hpp"
#include "support/bytes/hex.hpp"
#include "ucx/error.hpp"
#include "wire/frame.hpp"

namespace ucx::detail {
namespace {

const entry weights{
    "weights", entry_type::memory, 1'000'000'007, access::read_write, memory_kind::cuda, 3, {}, 2};
const entry log{"log/ü", entry_type::file, 0, access::read, memory_kind::host, 1};

control_header header(control_type type, std::uint64_t request = 77, std::uint32_t status = 0) {
  control_header made;
  made.type = type;
  made.request = request;
  made.status = status;
  return made;
}

const std::vector<std::byte> some_bytes(60'000, std::byte{7});

constexpr ticket_secret some_ticket{std::byte{1}, std::byte{2}};

/// One message of each type.
std::vector<std::vector<std::byte>> one_of_each() {
  using type = control_type;
  return {
      encode_control(header(type::hello), hello_body{1, 3, "0.1.0", 5}),
      encode_control(header(type::welcome), welcome_body{1, "0.1.0", 0}),
      encode_control(header(type::open), open_body{"weights", access::read_write}),
      encode_control(header(type::opened), opened_body{weights, {std::byte{1}, std::byte{2}}}),
      encode_control(header(type::stat), stat_body{"log"}),
      encode_control(header(type::described), described_body{log}),
      encode_control(header(type::list), list_body{"a"}),
      encode_control(header(type::listed), listed_body{{log, weights}, true}),
      encode_control(header(type::revoke, 0), revoke_body{9, "log"}),
      encode_control(header(type::bye, 0)),
      encode_control(header(type::create), create_body{"new", access::write, create_mode::fresh}),
      encode_control(header(type::commit), commit_body{8, true, true}),
      encode_control(header(type::done)),
      encode_control(header(type::release, 0), release_body{8}),
      encode_control(header(type::remove), remove_body{"old"}),
      encode_control(header(type::rename), rename_body{"old", "new", true}),
      encode_control(header(type::resize), resize_body{"log", 1'000'000}),
      encode_control(header(type::resize), resize_body{"", 7, 8}),
      encode_control(header(type::list), list_body{"a", "directory"}),
      encode_control(header(type::measure), measure_body{8, 1'000'000, 30'000'000'000}),
      encode_control(header(type::digest), digest_body{8, 1000, 3'000'000, 1 << 20}),
      encode_control(header(type::digested), digested_body{{{1, 2}, {3, ~0ULL}}}),
      encode_control(header(type::put), put_body{true, false, {{"a", {std::byte{1}}}, {"b", {}}}}),
      encode_control(header(type::stored), stored_body{{{}, errc::no_space}}),
      encode_control(header(type::fetch), fetch_body{5000, {"a", "b"}}),
      encode_control(header(type::fetched), fetched_body{{some_bytes, std::nullopt}}),
      encode_control(header(type::listed), listed_body{{log}, false, 3}),
      encode_control(header(type::make_directory), make_directory_body{"directory"}),
      encode_control(header(type::lend), lend_body{some_ticket}),
      encode_control(header(type::hello), hello_body{1, 1, "0.1.0", 32, some_ticket}),
  };
}

/// Returns whether place `at` of `all` is to be damaged. Inside of a long content one is like
/// another: a sanitizer's build takes a few.
bool is_tried(std::size_t at, std::size_t all) {
  constexpr std::size_t ends = 2000;
  constexpr std::size_t step = test::saved_effort == 1 ? 1 : 61;
  return at < ends || all - at <= ends || at % step == 0;
}

/// Decodes as every type; none may crash, and only the right one may succeed.
int decoders_that_accept(std::span<const std::byte> wire) {
  return decode_hello(wire).has_value() + decode_welcome(wire).has_value() +
         decode_open(wire).has_value() + decode_opened(wire).has_value() +
         decode_stat(wire).has_value() + decode_described(wire).has_value() +
         decode_list(wire).has_value() + decode_listed(wire).has_value() +
         decode_revoke(wire).has_value() + decode_create(wire).has_value() +
         decode_commit(wire).has_value() + decode_release(wire).has_value() +
         decode_remove(wire).has_value() + decode_rename(wire).has_value() +
         decode_resize(wire).has_value() + decode_measure(wire).has_value() +
         decode_digest(wire).has_value() + decode_digested(wire).has_value() +
         decode_put(wire).has_value() + decode_stored(wire).has_value() +
         decode_fetch(wire).has_value() + decode_fetched(wire).has_value() +
         decode_make_directory(wire).has_value() + decode_lend(wire).has_value();
}

TEST(ControlMessage, IsReadBack) {
  const auto wire = one_of_each();
  const auto hello = decode_hello(wire[0]);
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->oldest, 1U);
  EXPECT_EQ(hello->newest, 3U);
  EXPECT_EQ(hello->library, "0.1.0");
  EXPECT_EQ(hello->features, 5U);
  ASSERT_TRUE(decode_welcome(wire[1]));
  EXPECT_EQ(decode_welcome(wire[1])->version, 1U);
  const auto open = decode_open(wire[2]);
  ASSERT_TRUE(open);
  EXPECT_EQ(open->name, "weights");
  EXPECT_EQ(open->wanted, access::read_write);
  const auto opened = decode_opened(wire[3]);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->described, weights);
  EXPECT_EQ(opened->descriptor.size(), 2U);
  EXPECT_EQ(decode_stat(wire[4])->name, "log");
  EXPECT_EQ(decode_described(wire[5])->described, log);
  EXPECT_EQ(decode_list(wire[6])->after, "a");
  const auto listed = decode_listed(wire[7]);
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->entries, (std::vector<entry>{log, weights}));
  EXPECT_TRUE(listed->more);
  EXPECT_EQ(decode_revoke(wire[8])->region, 9U);
  EXPECT_FALSE(hello->ticket);
  EXPECT_EQ(decode_hello(wire.back())->ticket, some_ticket);
  EXPECT_EQ(decode_lend(wire[28])->ticket, some_ticket);
  EXPECT_EQ(decode_control(wire[9])->type, control_type::bye);
  EXPECT_EQ(decode_control(wire[7])->request, 77U);
}

TEST(ControlMessage, OfAStoreIsReadBack) {
  const auto wire = one_of_each();
  const auto create = decode_create(wire[10]);
  ASSERT_TRUE(create);
  EXPECT_EQ(create->name, "new");
  EXPECT_EQ(create->wanted, access::write);
  EXPECT_EQ(create->mode, create_mode::fresh);
  EXPECT_EQ(decode_commit(wire[11])->region, 8U);
  EXPECT_TRUE(decode_commit(wire[11])->durable);
  EXPECT_TRUE(decode_commit(wire[11])->released);
  EXPECT_EQ(decode_control(wire[12])->type, control_type::done);
  EXPECT_EQ(decode_release(wire[13])->region, 8U);
  EXPECT_EQ(decode_remove(wire[14])->name, "old");
  EXPECT_EQ(decode_rename(wire[15])->from, "old");
  EXPECT_EQ(decode_rename(wire[15])->to, "new");
  EXPECT_TRUE(decode_rename(wire[15])->exclusive);
  EXPECT_EQ(decode_resize(wire[16])->size, 1'000'000U);
  EXPECT_EQ(decode_resize(wire[16])->region, 0U);
  EXPECT_EQ(decode_resize(wire[17])->region, 8U);
  EXPECT_EQ(decode_list(wire[18])->directory, "directory");
  EXPECT_EQ(decode_make_directory(wire[27])->name, "directory");
  EXPECT_FALSE(decode_list(wire[6])->directory);
  opened_body growing{weights, {std::byte{1}}, 1000, 200, true, 77};
  constexpr std::int64_t latest = std::numeric_limits<std::int64_t>::max();
  for (const std::optional<file_time> at :
       {std::optional<file_time>(), std::optional(file_time{0, 0}),
        std::optional(file_time{77, 999'999'999}), std::optional(file_time{-1, 5}),
        std::optional(file_time{-latest - 1, 0}), std::optional(file_time{latest, 0})}) {
    growing.described.modified = at;
    const auto told = decode_opened(encode_control(header(control_type::opened), growing));
    ASSERT_TRUE(told);
    EXPECT_EQ(told->described, growing.described);
  }
  const auto opened = decode_opened(encode_control(header(control_type::opened), growing));
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->limit, 1000U);
  EXPECT_EQ(opened->window, 200U);
  EXPECT_TRUE(opened->held);
  EXPECT_EQ(opened->identity, 77U);
}

TEST(ControlMessage, ThatMeasuresIsReadBack) {
  const auto measure = decode_measure(one_of_each()[19]);
  ASSERT_TRUE(measure);
  EXPECT_EQ(measure->region, 8U);
  EXPECT_EQ(measure->known, 1'000'000U);
  EXPECT_EQ(measure->wait, 30'000'000'000U);
}

TEST(ControlMessage, OfHashesIsReadBack) {
  const auto digest = decode_digest(one_of_each()[20]);
  ASSERT_TRUE(digest);
  EXPECT_EQ(digest->region, 8U);
  EXPECT_EQ(digest->offset, 1000U);
  EXPECT_EQ(digest->length, 3'000'000U);
  EXPECT_EQ(digest->chunk, 1U << 20U);
  const auto digested = decode_digested(one_of_each()[21]);
  ASSERT_TRUE(digested);
  EXPECT_EQ(digested->digests, (std::vector<content_digest>{{1, 2}, {3, ~0ULL}}));
}

TEST(ControlMessage, OfWholeFilesIsReadBack) {
  const auto put = decode_put(one_of_each()[22]);
  ASSERT_TRUE(put);
  EXPECT_TRUE(put->exclusive);
  EXPECT_FALSE(put->durable);
  ASSERT_EQ(put->files.size(), 2U);
  EXPECT_EQ(put->files[0].name, "a");
  EXPECT_EQ(put->files[0].content, (std::vector<std::byte>{std::byte{1}}));
  EXPECT_TRUE(put->files[1].content.empty());
  const auto stored = decode_stored(one_of_each()[23]);
  ASSERT_TRUE(stored);
  ASSERT_EQ(stored->outcomes.size(), 2U);
  EXPECT_FALSE(stored->outcomes[0]);
  EXPECT_EQ(stored->outcomes[1], errc::no_space);
  const auto fetch = decode_fetch(one_of_each()[24]);
  ASSERT_TRUE(fetch);
  EXPECT_EQ(fetch->most, 5000U);
  EXPECT_EQ(fetch->names, (std::vector<std::string>{"a", "b"}));
  const auto fetched = decode_fetched(one_of_each()[25]);
  ASSERT_TRUE(fetched);
  EXPECT_EQ(fetched->contents, (decltype(fetched->contents){some_bytes, std::nullopt}));
}

TEST(ControlMessage, WithHalfAHashIsNone) {
  auto wire = encode_control(header(control_type::digested), digested_body{{{1, 2}}});
  ASSERT_EQ(std::to_integer<int>(wire[18]), 16) << "the length of the binary";
  wire[18] = std::byte{8};
  wire.resize(wire.size() - 8);
  EXPECT_FALSE(decode_digested(wire));
}

TEST(ControlMessage, WithATicketOfAnotherSizeIsNone) {
  // The array, its one element: a binary of 16 bytes.
  const auto right = encode_control(header(control_type::lend), lend_body{some_ticket});
  ASSERT_EQ(right.size(), control_header::size + 3 + some_ticket.size());
  for (const unsigned size : {0U, 15U, 17U, 32U}) {
    auto wire = right;
    wire[control_header::size + 2] = static_cast<std::byte>(size);
    wire.resize(control_header::size + 3 + size);
    EXPECT_FALSE(decode_lend(wire)) << size;
  }
  auto text = right;
  text[control_header::size + 1] = std::byte{0xd9};
  EXPECT_FALSE(decode_lend(text));
  for (const unsigned size : {15U, 17U}) {
    auto wire = encode_control(header(control_type::hello), hello_body{1, 1, "1", 32, some_ticket});
    wire[wire.size() - some_ticket.size() - 1] = static_cast<std::byte>(size);
    wire.resize(wire.size() - some_ticket.size() + size);
    EXPECT_FALSE(decode_hello(wire)) << size;
  }
}

TEST(ControlMessage, OfALaterVersionIsRefusedInGeneralTerms) {
  auto wire = encode_control(header(control_type::resize, 5), resize_body{"a", 1});
  EXPECT_FALSE(refuse_unknown(wire));
  wire[3] = std::byte{static_cast<std::uint8_t>(control_type::lend) + 1};
  EXPECT_FALSE(decode_control(wire));
  const auto refused = refuse_unknown(wire);
  ASSERT_TRUE(refused);
  EXPECT_EQ(decode_control(*refused)->type, control_type::done);
  EXPECT_EQ(decode_control(*refused)->request, 5U);
  EXPECT_EQ(status_error(decode_control(*refused)->status), errc::not_supported);
  wire[0] = std::byte{0};
  EXPECT_FALSE(refuse_unknown(wire));
  EXPECT_FALSE(refuse_unknown(std::span(wire).first(15)));
}

TEST(ControlMessage, HasTheseBytes) {
  // docs/reference/wire-format.md: a change of the format shows here.
  EXPECT_EQ(test::to_hex(encode_control(header(control_type::open, 0x0102), open_body{"ab"})),
            "5543010300000000020100000000000092a2616201");
}

TEST(ControlMessage, OfOneTypeIsNoneOfAnother) {
  for (const auto& wire : one_of_each()) {
    const bool has_body = wire.size() > control_header::size;
    EXPECT_EQ(decoders_that_accept(wire), has_body ? 1 : 0);
  }
}

TEST(ControlMessage, WithAStatusHasNoBodyButForWelcome) {
  auto refused = encode_control(header(control_type::opened, 1, 4));
  EXPECT_EQ(decode_control(refused)->status, 4U);
  EXPECT_FALSE(decode_opened(refused));
  const auto welcome =
      encode_control(header(control_type::welcome, 1, 10), welcome_body{2, "9", 0});
  ASSERT_TRUE(decode_welcome(welcome));
  EXPECT_EQ(decode_welcome(welcome)->version, 2U);
}

TEST(ControlMessage, CutOffAnywhereIsNone) {
  for (const auto& wire : one_of_each()) {
    for (std::size_t size = 0; size < wire.size(); ++size) {
      if (!is_tried(size, wire.size())) continue;
      EXPECT_EQ(decoders_that_accept(std::span(wire).first(size)), 0) << size;
    }
    auto longer = wire;
    longer.push_back(std::byte{0xc0});
    EXPECT_EQ(decoders_that_accept(longer), 0);
  }
}

TEST(ControlMessage, WithAFlippedBitIsNoneOrAnother) {
  for (auto wire : one_of_each()) {
    const std::size_t bits = 8 * wire.size();
    for (std::size_t bit = 0; bit < bits; ++bit) {
      if (!is_tried(bit, bits)) continue;
      const auto flip = static_cast<std::byte>(1U << (bit % 8));
      wire[bit / 8] ^= flip;
      EXPECT_LE(decoders_that_accept(wire), 1);
      wire[bit / 8] ^= flip;
    }
  }
}

TEST(ControlMessage, OfNonsenseIsNone) {
  std::mt19937_64 random(11);
  const auto each = one_of_each();
  for (int round = 0; round < test::effort(50000); ++round) {
    auto wire = each[random() % 18];
    wire.resize(control_header::size + random() % 64);
    for (std::size_t i = control_header::size; i < wire.size(); ++i) {
      wire[i] = static_cast<std::byte>(random());
    }
    EXPECT_LE(decoders_that_accept(wire), 1);
  }
}

TEST(ControlMessage, BeyondItsLimitsIsNone) {
  const auto raw = [](control_type type, std::initializer_list<unsigned> body) {
    auto wire = encode_control(header(type));
    for (const unsigned byte : body) wire.push_back(static_cast<std::byte>(byte));
    return wire;
  };
  // An array that says it has 2^32 - 1 elements, a text of 2^32 - 1 bytes, and arrays in arrays.
  EXPECT_FALSE(decode_listed(raw(control_type::listed, {0x92, 0xdd, 0xff, 0xff, 0xff, 0xff})));
  EXPECT_FALSE(decode_stat(raw(control_type::stat, {0x91, 0xdb, 0xff, 0xff, 0xff, 0xff})));
  auto deep = raw(control_type::stat, {});
  deep.resize(deep.size() + 60000, std::byte{0x91});
  EXPECT_FALSE(decode_stat(deep));
  auto long_text = encode_control(header(control_type::stat), stat_body{std::string(3000, 'a')});
  EXPECT_FALSE(decode_stat(long_text));
  // Rights that are none, a type that is none.
  EXPECT_FALSE(decode_open(raw(control_type::open, {0x92, 0xa1, 'a', 0x00})));
  EXPECT_FALSE(decode_open(raw(control_type::open, {0x92, 0xa1, 'a', 0x04})));
  EXPECT_TRUE(decode_open(raw(control_type::open, {0x92, 0xa1, 'a', 0x03})));
}

TEST(ControlMessage, WithAnEntryWhoseNameIsNoneIsNone) {
  for (const std::string& wrong : {std::string(), std::string("\xff"), std::string("a\0b", 3),
                                   std::string(1025, 'n'), std::string("\x9b")}) {
    entry described = weights;
    described.name = wrong;
    EXPECT_FALSE(
        decode_listed(encode_control(header(control_type::listed), listed_body{{log, described}})));
    EXPECT_FALSE(decode_described(
        encode_control(header(control_type::described), described_body{described})));
    EXPECT_FALSE(
        decode_opened(encode_control(header(control_type::opened), opened_body{described, {}})));
  }
  entry longest = weights;
  longest.name = std::string(1024, 'n');
  EXPECT_TRUE(
      decode_described(encode_control(header(control_type::described), described_body{longest})));
}

TEST(ControlMessage, PassesOverElementsOfALaterVersion) {
  auto wire = encode_control(header(control_type::stat));
  for (const unsigned byte : {0x93U, 0xa1U, 0x61U, 0x05U, 0x92U, 0x01U, 0x02U}) {
    wire.push_back(static_cast<std::byte>(byte));
  }
  const auto stat = decode_stat(wire);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->name, "a");
}

TEST(ControlMessage, ListTellsHowMuchItLeavesOut) {
  const auto said = [](std::uint64_t unserved) {
    return encode_control(header(control_type::listed), listed_body{{}, false, unserved});
  };
  EXPECT_EQ(decode_listed(said(0)).value().unserved, 0U);
  EXPECT_EQ(decode_listed(said(7)).value().unserved, 7U);
  EXPECT_EQ(decode_listed(said(most_unserved)).value().unserved, most_unserved);
  EXPECT_FALSE(decode_listed(said(most_unserved + 1)));
  EXPECT_LE(said(most_unserved).size() - said(0).size(), 5U);
}

TEST(ControlMessage, EntryTakesNoMoreRoomThanPromised) {
  entry widest{std::string(1024, 'n'),
               entry_type::file,
               ~std::uint64_t{0},
               access::read_write,
               memory_kind::other,
               ~std::uint64_t{0},
               file_time{std::numeric_limits<std::int64_t>::min(), 999'999'999},
               0x7fff'fffe};
  const auto with = [](std::vector<entry> entries) {
    return encode_control(header(control_type::listed), listed_body{std::move(entries), false});
  };
  EXPECT_LE(with({widest}).size() - with({}).size(), encoded_size(widest));
  EXPECT_LE(with({log}).size() - with({}).size(), encoded_size(log));
}

}  // namespace
}  // namespace ucx::detail
