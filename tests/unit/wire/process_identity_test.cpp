#include "wire/process_identity.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/owned_descriptor.hpp"

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

/// A child of fork() that says who it is and then does nothing. It does not outlive this.
class introduced_child {
 public:
  introduced_child() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reader_ = owned_descriptor(ends[0]);
    const owned_descriptor writer(ends[1]);
    id_ = ::fork();
    if (id_ == 0) introduce(writer.get());
  }
  introduced_child(const introduced_child&) = delete;
  introduced_child& operator=(const introduced_child&) = delete;
  ~introduced_child() { reap(); }

  ::pid_t id() const noexcept { return id_; }
  std::optional<process_identity> identity() const {
    std::vector<std::byte> said(100);
    const ::ssize_t length = ::read(reader_.get(), said.data(), said.size());
    if (length <= 0) return std::nullopt;
    return decode_process_identity(std::span(said).first(static_cast<std::size_t>(length)));
  }
  void kill() const noexcept {
    if (id_ > 0) ::kill(id_, SIGKILL);
  }
  /// Its number is free then.
  void reap() noexcept {
    kill();
    if (id_ > 0) ::waitpid(id_, nullptr, 0);
    id_ = -1;
  }

 private:
  [[noreturn]] static void introduce(int to) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const std::optional<process_identity> self = process_identity::own();
    const std::vector<std::byte> said = self ? self->encode() : std::vector<std::byte>();
    const ::ssize_t written = ::write(to, said.data(), said.size());
    if (written > 0) ::pause();
    ::_exit(1);
  }

  owned_descriptor reader_;
  ::pid_t id_ = -1;
};

TEST(ProcessIdentity, OfAChildIsNotItsParents) {
  const std::optional<process_identity> own = process_identity::own();  // is known from here on
  ASSERT_TRUE(own);
  const introduced_child child;
  ASSERT_GT(child.id(), 0);
  const std::optional<process_identity> found = child.identity();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->process, static_cast<std::uint64_t>(child.id()));
  EXPECT_EQ(found->pid_namespace, own->pid_namespace);
  EXPECT_EQ(process_identity::own(), own);
}

TEST(ProcessIdentity, LeadsToAProcessUntilThatEnds) {
  introduced_child child;
  ASSERT_GT(child.id(), 0);
  const std::optional<process_identity> found = child.identity();
  ASSERT_TRUE(found);
  const process_identity::opened there = found->open();
  if (!there.descriptor) GTEST_SKIP() << "the system has no descriptors of processes";
  ::pollfd polled = {there.descriptor.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&polled, 1, 20), 0);
  process_identity older = *found;
  --older.started;
  EXPECT_FALSE(older.open().descriptor) << "another process had the number then";
  EXPECT_FALSE(older.open().gone) << "who has it lives";
  process_identity elsewhere = *found;
  ++elsewhere.pid_namespace;
  EXPECT_FALSE(elsewhere.open().descriptor);
  child.kill();
  EXPECT_EQ(::poll(&polled, 1, 10'000), 1);
  // It has its number until it is reaped.
  EXPECT_TRUE(found->open().descriptor);
  EXPECT_TRUE(older.open().gone) << "whoever had the number is dead";
  child.reap();
  EXPECT_TRUE(found->open().gone);
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
