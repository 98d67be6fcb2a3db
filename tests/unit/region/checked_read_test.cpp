// Reads whose bytes are checked against the owner's checksums.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/files/temporary_file.hpp"
#include "support/simulated/frame_peer.hpp"
#include "support/simulated/remote_memory.hpp"
#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_server.hpp"
#include "ucx/error.hpp"
#include "ucx/stream.hpp"
#include "wire/digest.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::frame;
using detail::opcode;
using detail::seal_state;

constexpr std::size_t one_piece = 4096;
constexpr io_options verified{.verify = true};

/// Of what the owner sends from here on: answers.
fault_plan& owners_faults(served_region& served) {
  served.connection.wait_connected();
  return served.pair.owner_process.faults();
}

TEST(Digest, TellsOtherBytesAndThoseOfAnotherQuestion) {
  std::vector<std::byte> bytes = pattern(1000);
  frame asked;
  asked.request = 1;
  asked.region = 2;
  asked.generation = 3;
  asked.offset = 4;
  frame said;
  said.offset = 77;
  seal(said, asked, bytes);
  EXPECT_EQ(check_seal(said, asked, bytes), seal_state::intact);
  for (std::size_t i = 0; i < bytes.size(); i += 9) {
    bytes[i] ^= std::byte{0x10};
    EXPECT_EQ(check_seal(said, asked, bytes), seal_state::damaged) << i;
    bytes[i] ^= std::byte{0x10};
  }
  EXPECT_EQ(check_seal(said, asked, std::span(bytes).first(999)), seal_state::damaged);
  for (std::uint64_t* each :
       {&asked.request, &asked.region, &asked.generation, &asked.offset, &said.offset}) {
    for (unsigned bit = 0; bit < 64; ++bit) {
      *each ^= std::uint64_t{1} << bit;
      EXPECT_EQ(check_seal(said, asked, bytes), seal_state::damaged) << bit;
      *each ^= std::uint64_t{1} << bit;
    }
  }
  EXPECT_EQ(check_seal(said, asked, bytes), seal_state::intact);
}

TEST(Digest, IsThatOfTheWire) {
  // XXH3-128 of one zero byte, and the XXH3-64 of 40 zero bytes as its seed, from the reference
  // implementation.
  frame said;
  const std::byte zero{0};
  seal(said, {}, {&zero, 1});
  EXPECT_EQ(said.incarnation, 0xd66ac66d1eb921ffU);
  EXPECT_EQ(said.generation, 0x1ee88ac7eb087ee7U);
}

TEST(CheckedRead, BringsWhatIsThere) {
  served_region served(5 * one_piece + 1, with_pieces_of(one_piece));
  for (const std::size_t size :
       {std::size_t{1}, one_piece - 1, one_piece, one_piece + 1, 5 * one_piece}) {
    std::vector<std::byte> into(size);
    served.region.read_at(1, into, verified);
    EXPECT_TRUE(holds_pattern(into, 0, 1)) << size;
  }
}

TEST(CheckedRead, DoesNotMeetDamageUnnoticed) {
  served_region served(one_piece);
  std::vector<std::byte> into(one_piece);
  owners_faults(served).damage(call::am_send);
  served.region.read_at(0, into);
  EXPECT_FALSE(holds_pattern(into));  // who does not ask is not told
  owners_faults(served).damage(call::am_send);
  served.region.read_at(0, into, verified);
  EXPECT_TRUE(holds_pattern(into));
}

TEST(CheckedRead, AsksTwiceMore) {
  served_region served(one_piece);
  std::vector<std::byte> into(one_piece);
  for (unsigned i = 1; i <= 2; ++i) owners_faults(served).damage(call::am_send, i);
  served.region.read_at(0, into, verified);
  EXPECT_TRUE(holds_pattern(into));
  for (unsigned i = 1; i <= 3; ++i) owners_faults(served).damage(call::am_send, i);
  std::error_code ec;
  served.region.read_at(0, into, verified, ec);
  EXPECT_EQ(ec, errc::checksum_mismatch);
  served.region.read_at(0, into, verified);
  EXPECT_TRUE(holds_pattern(into));
}

TEST(CheckedRead, SaysWhichBytesAreDamaged) {
  served_region served(4 * one_piece, with_pieces_of(one_piece));
  std::vector<std::byte> into(3 * one_piece);
  for (const unsigned second : {2U, 5U, 8U}) owners_faults(served).damage(call::am_send, second);
  try {
    served.region.read_at(100, into, verified);
    FAIL() << "damage was not noticed";
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::checksum_mismatch);
    const std::string bytes = "from " + std::to_string(100 + one_piece) + " to " +
                              std::to_string(100 + 2 * one_piece - 1);
    EXPECT_NE(std::string(failed.what()).find(bytes + " arrived damaged"), std::string::npos)
        << failed.what();
  }
}

TEST(CheckedRead, IsMadeOfEachPieceOfABatch) {
  served_region served(1000);
  std::vector<std::byte> one(10);
  std::vector<std::byte> other(20);
  const std::vector<read_piece> pieces{{5, one}, {500, other}};
  for (unsigned i = 1; i <= 2; ++i) owners_faults(served).damage(call::am_send, i);
  served.region.read_batch(pieces, verified);
  EXPECT_TRUE(holds_pattern(one, 0, 5));
  EXPECT_TRUE(holds_pattern(other, 0, 500));
}

TEST(CheckedRead, IsNotToBeHadOfMemoryOfADevice) {
  served_region served(100);
  remote_descriptor elsewhere = served.exposed.descriptor();
  elsewhere.kind = memory_kind::cuda;
  remote_region region(served.connection, elsewhere);
  std::vector<std::byte> into(10);
  std::error_code ec;
  region.read_at(0, into, verified, ec);
  EXPECT_EQ(ec, errc::not_supported);
}

TEST(CheckedRead, ChecksFiles) {
  const temporary_file file(3 * one_piece);
  simulated_server world;
  const publication published = world.server().publish_file("file", file.path(), access::read);
  client from = world.connect();
  remote_region region = from.open("file", access::read);
  std::vector<std::byte> into(3 * one_piece);
  world.process.faults().damage(call::am_send);
  region.read_at(0, into, verified);
  EXPECT_TRUE(holds_pattern(into));
  world.process.faults().damage(call::am_send, 0);
  std::error_code ec;
  region.read_at(0, into, verified, ec);
  EXPECT_EQ(ec, errc::checksum_mismatch);
  world.process.faults().clear();
}

/// A reader of ours, and an owner that a test speaks for.
class AnsweringOwner : public testing::Test {
 protected:
  AnsweringOwner() {
    peer_.welcome_everybody();
    peer_.on_frame = [this](const frame_peer::heard_frame& heard) {
      if (heard.said.code == opcode::read) answer(heard.said);
    };
    connection_.emplace(pair_.reader, peer_.its_address());
    connection_->wait_connected();
    remote_descriptor descriptor;
    descriptor.region = 1;
    descriptor.size = 1000;
    descriptor.granted = access::read;
    region_.emplace(*connection_, descriptor);
  }
  ~AnsweringOwner() override { peer_.on_frame = {}; }

  /// Answers with the pattern, after `seals` has had its way with the frame.
  void answer(const frame& asked) {
    asked_.push_back(asked.status);
    frame said;
    said.code = opcode::data;
    said.session = asked.session;
    said.request = asked.request;
    said.length = asked.length;
    const std::vector<std::byte> bytes = pattern(static_cast<std::size_t>(said.length));
    if (seals) seals(said, asked, bytes);
    peer_.say(peer_.guest, said, bytes);
  }

  std::function<void(frame&, frame, std::span<const std::byte>)> seals;
  std::vector<std::uint32_t> asked_;
  std::vector<std::byte> into_ = std::vector<std::byte>(100);

 private:
  simulated_pair pair_;
  frame_peer peer_{pair_.network, "owner"};
  std::optional<endpoint> connection_;

 protected:
  std::optional<remote_region> region_;
};

TEST_F(AnsweringOwner, ThatSendsNoChecksumsIsTooOld) {
  try {
    region_->read_at(0, into_, verified);
    FAIL() << "nothing was checked";
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::not_supported);
    EXPECT_NE(std::string(failed.what()).find("sends no checksums"), std::string::npos);
  }
  region_->read_at(0, into_);
  EXPECT_TRUE(holds_pattern(into_));
  EXPECT_EQ(asked_, (std::vector<std::uint32_t>{frame::with_digests, 0}));
}

TEST_F(AnsweringOwner, ThatUnderstoodAnotherOffsetIsNotBelieved) {
  seals = [](frame& said, frame understood, std::span<const std::byte> bytes) {
    understood.offset ^= 64;
    seal(said, understood, bytes);
  };
  std::error_code ec;
  region_->read_at(0, into_, verified, ec);
  EXPECT_EQ(ec, errc::checksum_mismatch);
  EXPECT_EQ(asked_.size(), 3U);
}

TEST(CheckedStream, ShowsDamageAndGoesOnBehindIt) {
  served_region served(64 * one_piece, with_pieces_of(one_piece));
  istream in(served.region, {.buffer_size = one_piece, .queue_depth = 1, .verify = true});
  std::vector<char> into(2 * one_piece);
  in.read(into.data(), std::streamsize(one_piece));
  EXPECT_TRUE(in);
  owners_faults(served).damage(call::am_send, 0);
  in.read(into.data(), std::streamsize(into.size()));
  EXPECT_TRUE(in.bad());
  EXPECT_EQ(in.error(), errc::checksum_mismatch);
  owners_faults(served).clear();
  in.clear();
  EXPECT_EQ(in.tellg(), std::streampos(one_piece));
  in.read(into.data(), std::streamsize(into.size()));
  ASSERT_TRUE(in);
  EXPECT_TRUE(holds_pattern(std::as_bytes(std::span(into)), 0, one_piece));
}

}  // namespace
}  // namespace ucx::test
