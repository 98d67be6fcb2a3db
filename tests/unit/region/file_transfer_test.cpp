// Real files over a real transport. Among the unit tests, because a file is exposed by a private
// name.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "region/exposed/file_region.hpp"
#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_file.hpp"
#include "support/transports/connected_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"
#include "worker/core_access.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

class FileTransfer : public testing::TestWithParam<pair_options> {
 protected:
  std::shared_ptr<detail::file_region> expose(const std::filesystem::path& path) {
    return detail::file_region::make(detail::core_access::core(*pair_.owner_context), path)
        .or_throw();
  }
  remote_region open(const detail::file_region& exposed) {
    return remote_region(*pair_.connection, exposed.descriptor());
  }

  connected_pair pair_{GetParam()};
};

TEST_P(FileTransfer, BringsTheWholeFileFromTheDiskAndFromMemory) {
  const temporary_file file(20 * mib + 1);
  const auto exposed = expose(file.path());
  remote_region region = open(*exposed);
  std::vector<std::byte> into(20 * mib + 1);
  for (int i = 0; i < 2; ++i) {
    file.drop_cache();
    std::fill(into.begin(), into.end(), std::byte{});
    region.read_at(0, into);
    ASSERT_TRUE(holds_pattern(into));
    // Small reads here and there, of what the first one left in memory.
    for (std::uint64_t at = 0; at < 20 * mib; at += mib - 4097) {
      region.read_at(at, std::span(into).first(100));
      ASSERT_TRUE(holds_pattern(std::span(into).first(100), 0, at));
    }
  }
}

TEST_P(FileTransfer, ReachesBeyondFourGibibytes) {
  const temporary_file file;
  file.resize(5 * gib);
  file.write(4 * gib - 100'000, pattern(200'000, 1));
  file.write(5 * gib - 16, pattern(16, 2));
  const auto exposed = expose(file.path());
  remote_region region = open(*exposed);
  ASSERT_EQ(region.size(), 5 * gib);
  std::vector<std::byte> into(200'000);
  region.read_at(4 * gib - 100'000, into);
  EXPECT_TRUE(holds_pattern(into, 1));
  region.read_at(5 * gib - 16, std::span(into).first(16));
  EXPECT_TRUE(holds_pattern(std::span(into).first(16), 2));
  region.read_at(2 * gib, into);
  EXPECT_TRUE(all_bytes_are(into, std::byte{}));
  std::error_code ec;
  region.read_at(5 * gib - 1, std::span(into).first(2), {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
}

TEST_P(FileTransfer, SeveralReadsAtATimeShareTheBuffers) {
  const temporary_file file(4 * mib);
  file.drop_cache();
  const auto exposed = expose(file.path());
  std::deque<endpoint> connections;
  std::deque<remote_region> regions;
  std::deque<std::vector<std::byte>> memory;
  std::deque<request> reads;
  for (int i = 0; i < 4; ++i) {
    regions.emplace_back(connections.emplace_back(pair_.connect()), exposed->descriptor());
    for (int k = 0; k < 10; ++k) {
      memory.emplace_back(4 * mib);
      reads.push_back(regions.back().start_read_at(0, memory.back()));
    }
  }
  for (std::size_t i = 0; i < reads.size(); ++i) {
    reads[i].wait();
    EXPECT_TRUE(holds_pattern(memory[i])) << i;
  }
}

TEST_P(FileTransfer, FileThatIsCutOffWhileItIsReadIsAnError) {
  const temporary_file file(16 * mib);
  const auto exposed = expose(file.path());
  remote_region region = open(*exposed);
  std::deque<std::vector<std::byte>> memory;
  std::deque<request> reads;
  for (int i = 0; i < 8; ++i) {
    memory.emplace_back(16 * mib);
    reads.push_back(region.start_read_at(0, memory.back()));
  }
  reads.front().wait();
  file.resize(3 * mib);
  std::size_t failed = 0;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    std::error_code ec;
    reads[i].wait(ec);
    if (ec) {
      EXPECT_EQ(ec, errc::content_changed);
      ++failed;
    }
  }
  EXPECT_FALSE(reads.front().error());
  std::error_code ec;
  region.read_at(0, memory.front(), {}, ec);
  EXPECT_EQ(ec, errc::content_changed);
  region.read_at(0, std::span(memory.front()).first(3 * mib), {}, ec);
  EXPECT_FALSE(ec);
  EXPECT_TRUE(holds_pattern(std::span(memory.front()).first(3 * mib)));
  EXPECT_FALSE(pair_.connection->status());
}

TEST_P(FileTransfer, WithdrawnFileIsRevokedForThoseWhoReadIt) {
  const temporary_file file(16 * mib);
  const auto exposed = expose(file.path());
  remote_region region = open(*exposed);
  std::deque<std::vector<std::byte>> memory;
  std::deque<request> reads;
  for (int i = 0; i < 8; ++i) {
    memory.emplace_back(16 * mib);
    reads.push_back(region.start_read_at(0, memory.back()));
  }
  reads.front().wait();
  const bool by_loop = GetParam().owner == progress_mode::external;
  if (by_loop) pair_.pause_owner();
  const auto begin = std::chrono::steady_clock::now();
  exposed->close();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
  if (by_loop) pair_.resume_owner();
  for (request& each : reads) {
    std::error_code ec;
    each.wait(ec);
    EXPECT_TRUE(!ec || ec == errc::revoked) << ec;
  }
  std::error_code ec;
  region.read_at(0, memory.front(), {}, ec);
  EXPECT_EQ(ec, errc::revoked);
}

TEST_P(FileTransfer, OwnerMayGoWhileItsFileIsRead) {
  const temporary_file file(16 * mib);
  file.drop_cache();
  auto exposed = expose(file.path());
  remote_region region = open(*exposed);
  std::deque<std::vector<std::byte>> memory;
  std::deque<request> reads;
  for (int i = 0; i < 8; ++i) {
    memory.emplace_back(16 * mib);
    reads.push_back(region.start_read_at(0, memory.back()));
  }
  pair_.drive_until([] { return true; });
  pair_.owner_loop.reset();
  pair_.door.reset();
  pair_.owner.reset();
  exposed.reset();
  for (request& each : reads) {
    std::error_code ec;
    each.wait(ec);
    EXPECT_TRUE(!ec || ec == errc::connection_reset || ec == errc::revoked) << ec;
  }
}

/// Whoever waits for a peer's silence waits long.
const worker_options patient{.heartbeat_timeout = 60s};

INSTANTIATE_TEST_SUITE_P(
    OverTcp, FileTransfer,
    testing::Values(pair_options{route::tcp_by_address, progress_mode::sleeping_thread,
                                 progress_mode::caller, patient},
                    pair_options{route::tcp_by_listener, progress_mode::polling_thread,
                                 progress_mode::sleeping_thread, patient},
                    pair_options{route::tcp_by_listener, progress_mode::external,
                                 progress_mode::caller, patient}),
    name_of_pair);

}  // namespace
}  // namespace ucx::test
