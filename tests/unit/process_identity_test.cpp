#include "detail/process_identity.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace ucx::detail {
namespace {

TEST(ProcessIdentity, IsReadAsItWasWritten) {
  const std::optional<process_identity> own = process_identity::own();
  ASSERT_TRUE(own);
  EXPECT_EQ(own->process, static_cast<std::uint64_t>(::getpid()));
  std::vector<std::byte> wire = own->encode();
  EXPECT_EQ(decode_process_identity(wire), own);
  for (std::size_t length = 0; length < wire.size(); ++length) {
    EXPECT_FALSE(decode_process_identity(std::span(wire).first(length))) << length;
  }
  for (std::byte& each : wire) {
    each ^= std::byte{4};
    EXPECT_FALSE(decode_process_identity(wire));
    each ^= std::byte{4};
  }
}

TEST(ProcessIdentity, LeadsToAProcessUntilThatEnds) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const ::pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::optional<process_identity> self = process_identity::own();
    const std::vector<std::byte> said = self ? self->encode() : std::vector<std::byte>();
    const ::ssize_t written = ::write(ready[1], said.data(), said.size());
    if (written > 0) ::pause();
    ::_exit(1);
  }
  std::vector<std::byte> said(100);
  const ::ssize_t length = ::read(ready[0], said.data(), said.size());
  ASSERT_GT(length, 0);
  const auto found =
      decode_process_identity(std::span(said).first(static_cast<std::size_t>(length)));
  ASSERT_TRUE(found);
  const process_identity::opened there = found->open();
  if (!there.descriptor) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    GTEST_SKIP() << "the system has no descriptors of processes";
  }
  ::pollfd polled = {there.descriptor.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&polled, 1, 20), 0);
  process_identity older = *found;
  --older.started;
  EXPECT_FALSE(older.open().descriptor) << "another process had the number then";
  process_identity elsewhere = *found;
  ++elsewhere.pid_namespace;
  EXPECT_FALSE(elsewhere.open().descriptor);
  ::kill(child, SIGKILL);
  EXPECT_EQ(::poll(&polled, 1, 5000), 1);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(found->open().gone);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(ProcessIdentity, OfNobodyElseLeadsNowhere) {
  process_identity own = process_identity::own().value();
  for (const std::uint64_t number :
       {own.process, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()}) {
    own.process = number;
    const process_identity::opened found = own.open();
    EXPECT_FALSE(found.descriptor) << number;
    EXPECT_FALSE(found.gone) << number;
  }
}

}  // namespace
}  // namespace ucx::detail
