// Memory that its owner allocated, mapped by a reader on the same host.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/owned_descriptor.hpp"
#include "region/paths/shared_mapping.hpp"
#include "support/bytes/pattern.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/access.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_atomic.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

constexpr std::size_t region_size = 10'000;

/// An owner that allocated a region, and a reader that has a connection to it.
struct mapped_pair {
  explicit mapped_pair(access granted = access::read_write, simulated_pair_options options = {})
      : pair((options.shares_memory = true, options)),
        exposed(memory_region::allocate(pair.owner_context, region_size, granted)),
        connection(pair.connect()) {
    fill_pattern(exposed.bytes());
    connection.wait_connected();
  }

  remote_region open(const remote_descriptor& described,
                     transfer_method wanted = transfer_method::automatic) {
    return remote_region(connection, described, {.transfer_method = wanted});
  }
  remote_region open() { return open(exposed.descriptor()); }
  /// Returns what is said where `described` is to be mapped and can not be.
  std::string refusal(const remote_descriptor& described) {
    try {
      const remote_region none = open(described, transfer_method::mapped);
    } catch (const error& failed) {
      EXPECT_EQ(failed.code(), errc::not_supported);
      return failed.what();
    }
    ADD_FAILURE() << "it was mapped";
    return {};
  }

  simulated_pair pair;
  memory_region exposed;
  endpoint connection;
};

std::string proc_entry(const remote_descriptor& described) {
  return "/proc/" + std::to_string(described.memfd.process) + "/fd/" +
         std::to_string(described.memfd.descriptor);
}

TEST(RegionInPlace, IsTheOwnersMemoryItself) {
  mapped_pair both;
  remote_region region = both.open();
  EXPECT_EQ(region.transfer_method(), transfer_method::mapped);
  EXPECT_EQ(region.why_not(transfer_method::mapped), "");
  for (const transfer_method other :
       {transfer_method::cma, transfer_method::rma, transfer_method::message}) {
    EXPECT_EQ(region.why_not(other), "a better way is in use") << to_string(other);
  }
  EXPECT_TRUE(both.exposed.descriptor().shareable);
  const std::span<const std::byte> seen = region.view(0, region_size);
  EXPECT_TRUE(holds_pattern(seen));
  EXPECT_NE(seen.data(), both.exposed.bytes().data()) << "another mapping";
  both.exposed.bytes()[4711] = std::byte{0xA5};
  EXPECT_EQ(seen[4711], std::byte{0xA5});
  const std::span<std::byte> written = region.writable_view(100, 10);
  ASSERT_EQ(written.size(), 10U);
  written[3] = std::byte{0x5A};
  EXPECT_EQ(both.exposed.bytes()[103], std::byte{0x5A});
}

TEST(RegionInPlace, ReadsAndWritesWithoutAMessage) {
  mapped_pair both;
  remote_region region = both.open();
  const std::uint64_t before = both.pair.reader_process.count(call::am_send);
  std::vector<std::byte> into(region_size);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
  const std::vector<std::byte> from = pattern(2000, 7);
  region.write_at(5000, from);
  EXPECT_TRUE(holds_pattern(both.exposed.bytes().subspan(5000, 2000), 7)) << "without a flush";
  region.flush();
  EXPECT_FALSE(region.first_unconfirmed());
  remote_atomic<std::uint64_t> counter(region, 64);
  const std::uint64_t first = counter.load();
  EXPECT_EQ(counter.fetch_add(5), first);
  EXPECT_EQ(counter.load(), first + 5);
  EXPECT_EQ(both.pair.reader_process.count(call::am_send), before);
}

TEST(RegionInPlace, ChecksWhatItIsAskedFor) {
  mapped_pair both(access::read);
  const remote_region region = both.open();
  std::error_code ec;
  EXPECT_TRUE(region.view(region_size, 0, ec).empty());
  EXPECT_FALSE(ec);
  EXPECT_TRUE(region.view(region_size - 1, 2, ec).empty());
  EXPECT_EQ(ec, errc::out_of_range);
  EXPECT_TRUE(region.view(~std::uint64_t{0}, 2, ec).empty());
  EXPECT_EQ(ec, errc::out_of_range);
  EXPECT_TRUE(region.writable_view(0, 1, ec).empty());
  EXPECT_EQ(ec, errc::permission_denied);
  EXPECT_THROW(static_cast<void>(region.writable_view(0, 1)), error);
  remote_region none = both.open();
  const remote_region moved = std::move(none);
  EXPECT_TRUE(none.view(0, 1, ec).empty());  // NOLINT(bugprone-use-after-move): what that does
  EXPECT_EQ(ec, errc::closed);
}

TEST(RegionInPlace, ReadOnlyMemoryIsNeverMappedForWriting) {
  mapped_pair both(access::read);
  const remote_region region = both.open();
  EXPECT_EQ(region.transfer_method(), transfer_method::mapped);
  // Not the reader's mapping,
  const auto* const seen = region.view(0, region_size).data();
  auto* const page = const_cast<std::byte*>(seen);
  EXPECT_EXIT(
      {
        ::signal(SIGSEGV, SIG_DFL);
        *static_cast<volatile std::byte*>(page) = std::byte{1};
        ::_exit(0);
      },
      testing::KilledBySignal(SIGSEGV), "");
  // nor one that somebody else makes of the owner's file, nor by writing to that.
  const int file = ::open(proc_entry(both.exposed.descriptor()).c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(file, 0);
  EXPECT_EQ(::mmap(nullptr, region_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), MAP_FAILED);
  EXPECT_EQ(::pwrite(file, "x", 1, 0), -1);
  EXPECT_EQ(::ftruncate(file, 0), -1);
  ::close(file);
  EXPECT_TRUE(holds_pattern(both.exposed.bytes()));
}

TEST(RegionInPlace, WhatMayOnlyBeWrittenIsShownToNobody) {
  mapped_pair both(access::write);
  EXPECT_EQ(both.exposed.descriptor().memfd, memfd_handle());
  EXPECT_EQ(both.open().transfer_method(), transfer_method::message);
}

TEST(RegionInPlace, IsRevokedAtOnceAndWhatWasViewedStays) {
  mapped_pair both;
  remote_region region = both.open();
  const std::span<const std::byte> seen = region.view(0, region_size);
  both.exposed.close();
  std::error_code ec;
  std::vector<std::byte> into(1);
  region.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::revoked);
  region.write_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::revoked);
  EXPECT_TRUE(region.view(0, 1, ec).empty());
  EXPECT_EQ(ec, errc::revoked);
  EXPECT_TRUE(holds_pattern(seen));
}

TEST(RegionInPlace, OutlivesItsConnectionForThoseWhoLook) {
  mapped_pair both;
  std::optional<remote_region> region(both.open());
  const std::span<const std::byte> seen = region->view(0, region_size);
  both.connection.close();
  std::error_code ec;
  EXPECT_TRUE(region->view(0, 1, ec).empty());
  EXPECT_TRUE(ec);
  EXPECT_TRUE(holds_pattern(seen));
}

TEST(RegionInPlace, FileIsGoneWithTheLastWhoHasIt) {
  mapped_pair both;
  const std::string entry = proc_entry(both.exposed.descriptor());
  EXPECT_EQ(::access(entry.c_str(), F_OK), 0);
  const remote_region region = both.open();
  both.exposed.close();
  EXPECT_NE(::access(entry.c_str(), F_OK), 0) << "the owner keeps no descriptor";
}

TEST(RegionInPlace, SaysWhyItIsNot) {
  mapped_pair both;
  std::vector<std::byte> memory(100);
  const memory_region callers(both.pair.owner_context, std::span<std::byte>(memory), access::read);
  EXPECT_THAT(both.refusal(callers.descriptor()), testing::HasSubstr("not in a file"));
  remote_descriptor described = both.exposed.descriptor();
  described.host[3] ^= std::byte{1};
  EXPECT_THAT(both.refusal(described), testing::HasSubstr("another host"));
  // A way that nobody asked for by name is no error: the bytes move otherwise.
  const remote_region elsewhere = both.open(described);
  EXPECT_EQ(elsewhere.transfer_method(), transfer_method::message);
  std::error_code ec;
  EXPECT_TRUE(elsewhere.view(0, 1, ec).empty());
  EXPECT_EQ(ec, errc::not_supported);
  try {
    static_cast<void>(elsewhere.view(0, 1));
    FAIL();
  } catch (const error& failed) {
    EXPECT_THAT(failed.what(), testing::HasSubstr("another host"));
  }
  const remote_region asked = both.open(both.exposed.descriptor(), transfer_method::message);
  EXPECT_EQ(asked.transfer_method(), transfer_method::message);
  EXPECT_TRUE(asked.view(0, 1, ec).empty());
  EXPECT_EQ(ec, errc::not_supported);
}

TEST(RegionInPlace, EnvironmentForcesItOrFails) {
  mapped_pair both;
  std::vector<std::byte> memory(100);
  const memory_region callers(both.pair.owner_context, std::span<std::byte>(memory), access::read);
  ::setenv("UCXIO_TRANSFER_METHOD", "mapped", 1);
  std::error_code ec;
  const remote_region mapped(both.connection, both.exposed.descriptor(), {}, ec);
  EXPECT_FALSE(ec);
  EXPECT_EQ(mapped.transfer_method(), transfer_method::mapped);
  const remote_region none(both.connection, callers.descriptor(), {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  ::unsetenv("UCXIO_TRANSFER_METHOD");
}

TEST(RegionInPlace, ContextsThatShareNothing) {
  simulated_pair_options owner_alone;
  owner_alone.owner_context.share_memory = false;
  mapped_pair private_owner(access::read, owner_alone);
  EXPECT_EQ(private_owner.exposed.descriptor().memfd, memfd_handle());
  EXPECT_EQ(private_owner.open().transfer_method(), transfer_method::message);
  simulated_pair_options reader_alone;
  reader_alone.reader_context.share_memory = false;
  mapped_pair private_reader(access::read, reader_alone);
  EXPECT_EQ(private_reader.open().transfer_method(), transfer_method::message);
  EXPECT_THAT(private_reader.refusal(private_reader.exposed.descriptor()),
              testing::HasSubstr("made to share no memory"));
}

/// Numbers of a file that a hostile or confused owner gives.
TEST(RegionInPlace, TakesNothingButTheRegionsOwnFile) {
  mapped_pair both;
  const remote_descriptor good = both.exposed.descriptor();
  const memory_region other =
      memory_region::allocate(both.pair.owner_context, region_size, access::read_write);

  remote_descriptor bad = good;
  bad.memfd.descriptor = 9'999'999;
  EXPECT_THAT(both.refusal(bad), testing::HasSubstr("can not be opened"));
  bad = good;
  bad.memfd.process = ~std::uint64_t{0};
  EXPECT_THAT(both.refusal(bad), testing::HasSubstr("can not be opened"));
  bad = good;
  bad.memfd.inode += 1;
  EXPECT_THAT(both.refusal(bad), testing::HasSubstr("another one"));
  bad = good;
  bad.memfd.device += 1;
  EXPECT_THAT(both.refusal(bad), testing::HasSubstr("another one"));
  bad = good;
  bad.memfd = other.descriptor().memfd;
  EXPECT_THAT(both.refusal(bad), testing::HasSubstr("another region"));
  bad = good;
  bad.incarnation += 1;
  EXPECT_THAT(both.refusal(bad), testing::HasSubstr("another region"));
  for (const std::uint64_t length :
       {std::uint64_t{1}, std::uint64_t{1} << 20U, std::uint64_t{1} << 62U,
        (std::uint64_t{1} << 62U) + 1, ~std::uint64_t{0} - good.address}) {
    bad = good;
    bad.size = length;
    EXPECT_FALSE(both.refusal(bad).empty());
  }
  // A file that may be cut off would kill whoever maps it.
  const int file = ::memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(file, 0);
  struct ::stat about = {};
  ASSERT_EQ(::ftruncate(file, 16384), 0);
  ASSERT_EQ(::fallocate(file, 0, 0, 16384), 0);
  ASSERT_EQ(::fstat(file, &about), 0);
  bad = good;
  bad.memfd = {static_cast<std::uint64_t>(::getpid()), static_cast<std::uint64_t>(file),
               about.st_dev, about.st_ino};
  EXPECT_THAT(both.refusal(bad), testing::HasSubstr("cut off"));
  ::close(file);
  // One without memory would make whoever touches it take some.
  const int empty = ::memfd_create("empty", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(empty, 0);
  ASSERT_EQ(::ftruncate(empty, 16384), 0);
  ASSERT_EQ(::fcntl(empty, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  ASSERT_EQ(::fstat(empty, &about), 0);
  bad.memfd = {static_cast<std::uint64_t>(::getpid()), static_cast<std::uint64_t>(empty),
               about.st_dev, about.st_ino};
  EXPECT_THAT(both.refusal(bad), testing::HasSubstr("no memory of its own"));
  ::close(empty);
  // Not even opened: a terminal, a pipe, a device.
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_EQ(::fstat(ends[0], &about), 0);
  bad.memfd = {static_cast<std::uint64_t>(::getpid()), static_cast<std::uint64_t>(ends[0]),
               about.st_dev, about.st_ino};
  EXPECT_THAT(both.refusal(bad), testing::HasSubstr("another one"));
  ::close(ends[0]);
  ::close(ends[1]);
}

/// A file that the owner passes is looked at as one that is found.
TEST(RegionInPlace, TakesNothingElseThatIsPassed) {
  mapped_pair both;
  const remote_descriptor described = both.exposed.descriptor();
  remote_descriptor untold = described;
  untold.memfd = {};
  const auto why_not = [](const remote_descriptor& of, const remote_descriptor& file, int flags) {
    detail::owned_descriptor passed(::open(proc_entry(file).c_str(), flags | O_CLOEXEC));
    std::string why;
    const auto mapping = detail::shared_mapping::open(of, std::move(passed), why);
    EXPECT_EQ(mapping != nullptr, why.empty());
    return why;
  };
  EXPECT_EQ(why_not(described, described, O_RDWR), "");
  EXPECT_EQ(why_not(untold, described, O_RDWR), "");
  EXPECT_THAT(why_not(untold, described, O_RDONLY), testing::HasSubstr("mapping"));
  untold.granted = access::read;
  EXPECT_EQ(why_not(untold, described, O_RDONLY), "");
  const memory_region same =
      memory_region::allocate(both.pair.owner_context, region_size, access::read_write);
  EXPECT_THAT(why_not(described, same.descriptor(), O_RDWR), testing::HasSubstr("another one"));
  EXPECT_THAT(why_not(untold, same.descriptor(), O_RDWR), testing::HasSubstr("another region"));
  const memory_region longer =
      memory_region::allocate(both.pair.owner_context, 10 * region_size, access::read_write);
  EXPECT_THAT(why_not(untold, longer.descriptor(), O_RDWR), testing::HasSubstr("another one"));
}

TEST(RegionInPlace, PerformsNoAtomicOnAMisalignedPlace) {
  mapped_pair both;
  remote_descriptor bad = both.exposed.descriptor();
  bad.address += 4;  // so that offset 4 looks aligned
  remote_region region = both.open(bad);
  ASSERT_EQ(region.transfer_method(), transfer_method::mapped);
  std::error_code ec;
  std::uint64_t previous = 0;
  region
      .start_atomic(4, {.operation = atomic_operation::add, .width = 8, .operand = 1},
                    std::as_writable_bytes(std::span(&previous, 1)))
      .wait(ec);
  EXPECT_EQ(ec, errc::invalid_argument);
}

TEST(RegionInPlace, IsNotWhatUcxMaps) {
  simulated_pair_options options = one_host();
  options.shares_memory = true;
  simulated_pair pair(options);
  const memory_region exposed =
      memory_region::allocate(pair.owner_context, region_size, access::read);
  EXPECT_EQ(exposed.descriptor().memfd, memfd_handle());
  const endpoint connection = pair.connect();
  std::error_code ec;
  const remote_region none(connection, exposed.descriptor(),
                           {.transfer_method = transfer_method::mapped}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  const remote_region by_rma(connection, exposed.descriptor());
  EXPECT_NE(by_rma.transfer_method(), transfer_method::mapped);
  EXPECT_TRUE(by_rma.view(0, 1, ec).empty());
  EXPECT_EQ(ec, errc::not_supported);
}

/// Elsewhere the system ends a process for making a longer file.
TEST(RegionInPlace, LimitOnFileSizesLeavesPrivateMemory) {
  std::vector<std::string> lines;
  context_options owner;
  owner.log = {.level = log_level::info,
               .sink = [&](log_level, std::string_view line) { lines.emplace_back(line); }};
  simulated_pair pair({.owner_context = owner, .shares_memory = true});
  ::rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  ::rlimit few = before;
  few.rlim_cur = std::size_t{1} << 20U;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &few), 0);
  std::error_code ec;
  const memory_region longer =
      memory_region::allocate(pair.owner_context, std::size_t{1} << 20U, access::read, {}, ec);
  const memory_region fits = memory_region::allocate(pair.owner_context, 4096, access::read);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(ec);
  EXPECT_EQ(longer.size(), std::size_t{1} << 20U);
  EXPECT_EQ(longer.descriptor().memfd, memfd_handle());
  EXPECT_NE(fits.descriptor().memfd, memfd_handle());
  const auto told = [](const std::string& line) {
    return line.find(
               "1048576 allocated bytes can not be mapped by peers: files may not be so long;"
               " raise the limit (ulimit -f)") != std::string::npos;
  };
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), told), 1);
}

TEST(RegionInPlace, MemoryThatTheMachineHasNotIsRefused) {
  simulated_pair pair({.shares_memory = true});
  std::error_code ec;
  const memory_region none =
      memory_region::allocate(pair.owner_context, std::size_t{1} << 46U, access::read, {}, ec);
  EXPECT_EQ(ec, errc::no_memory);
  try {
    static_cast<void>(
        memory_region::allocate(pair.owner_context, std::size_t{1} << 46U, access::read));
    FAIL();
  } catch (const error& failed) {
    EXPECT_THAT(failed.what(), testing::HasSubstr("70368744177664 bytes"));
  }
}

/// UCX needs descriptors for its connections.
TEST(RegionInPlace, LeavesDescriptorsToOthers) {
  simulated_pair pair({.shares_memory = true});
  ::rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next_free = ::dup(STDERR_FILENO);
  ::close(next_free);
  ::rlimit few = before;
  few.rlim_cur = static_cast<::rlim_t>(next_free) + 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<memory_region> regions;
  std::size_t shared = 0;
  for (int i = 0; i < 100; ++i) {
    regions.push_back(memory_region::allocate(pair.owner_context, 100, access::read));
    if (regions.back().descriptor().memfd != memfd_handle()) ++shared;
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_GT(shared, 0U);
  EXPECT_LE(shared, few.rlim_cur / 4);
  regions.clear();
  EXPECT_NE(memory_region::allocate(pair.owner_context, 100, access::read).descriptor().memfd,
            memfd_handle());
}

class StreamInPlace : public testing::Test {
 protected:
  std::string text() const {
    const std::span<std::byte> all = both_.exposed.bytes();
    return {reinterpret_cast<const char*>(all.data()), all.size()};
  }
  mapped_pair both_;
  remote_region region_ = both_.open();
};

TEST_F(StreamInPlace, ReadsInPlace) {
  istream in(region_, {.buffer_size = 4096});
  const std::uint64_t before = both_.pair.reader_process.count(call::am_send);
  std::string all;
  for (char c = 0; in.get(c);) all += c;
  EXPECT_TRUE(in.eof());
  EXPECT_EQ(all, text());
  EXPECT_EQ(both_.pair.reader_process.count(call::am_send), before);
}

TEST_F(StreamInPlace, PutbackOfAnotherCharacterChangesNothing) {
  const std::string before = text();
  istream in(region_, {.buffer_size = 4096});
  for (const std::streamoff at : {1, 100, 4096, 4097, 8192, 9999}) {
    in.clear();
    in.seekg(at);
    ASSERT_TRUE(in.putback('\x7f')) << at;
    EXPECT_EQ(in.get(), 0x7f) << "what was put back is read";
    EXPECT_EQ(in.get(), static_cast<unsigned char>(before[static_cast<std::size_t>(at)]));
  }
  EXPECT_EQ(text(), before);
}

TEST_F(StreamInPlace, NoticesThatTheRegionIsWithdrawn) {
  istream in(region_, {.buffer_size = 4096});
  ASSERT_NE(in.get(), EOF);
  both_.exposed.close();
  std::string all(region_size, '\0');
  in.read(all.data(), static_cast<std::streamsize>(region_size));
  EXPECT_TRUE(in.bad());
  EXPECT_FALSE(in.eof());
  EXPECT_EQ(in.error(), errc::revoked);
}

TEST_F(StreamInPlace, ReaderThatStaysInOnePlaceNoticesToo) {
  istream in(region_, {.buffer_size = 4096});
  std::array<char, 8> some = {};
  in.seekg(0).read(some.data(), 8);
  ASSERT_TRUE(in.good());
  both_.exposed.close();
  in.seekg(0).read(some.data(), 8);
  EXPECT_TRUE(in.bad());
  EXPECT_EQ(in.error(), errc::revoked);
}

TEST_F(StreamInPlace, SeesItsOwnWrites) {
  iostream both(region_, {.buffer_size = 64});
  for (int i = 0; i < 200; ++i) {
    both.seekp(i * 37);
    both << i << ' ';
    both.seekg(i * 37);
    int found = -1;
    both >> found;
    ASSERT_EQ(found, i);
  }
}

}  // namespace
}  // namespace ucx::test
