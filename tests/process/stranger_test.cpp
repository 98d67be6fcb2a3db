// A reader on the owner's host that the system does not let look into the owner: it asks the owner.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/process/own_namespace.hpp"
#include "support/process/process_reading.hpp"
#include "support/process/test_peer.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using testing::HasSubstr;

constexpr std::size_t strange_size = 200'000;

class Stranger : public testing::Test {
 protected:
  Stranger() { fill_pattern(shareable_.bytes(), 4); }

  void SetUp() override {
    if (!system_reads_children()) GTEST_SKIP() << "the system lets nobody read another process";
  }

  /// Opens the memory in the other process, and returns which way it takes, and why.
  std::string way_of(test_peer& reader, const std::string& name = "matrix") {
    reader.ask("client " + owner_.url());
    reader.ask("open_name " + name + " read");
    EXPECT_EQ(reader.ask("read 1000 150000 4"), "yes");
    return reader.ask("way");
  }

  std::vector<std::byte> memory_ = pattern(strange_size, 4);
  ucx_server owner_;
  publication matrix_ = owner_.publish("matrix", std::span(memory_), access::read);
  publication shareable_ = owner_.allocate("shareable", strange_size, access::read);
};

// Else the other tests say nothing.
TEST_F(Stranger, IsNoneOfTheSameUser) {
  test_peer reader("tcp");
  EXPECT_EQ(way_of(reader), "cma ");
  EXPECT_EQ(way_of(reader, "shareable"), "mapped ");
}

TEST_F(Stranger, OfAnotherUserAsksTheOwner) {
  if (::getuid() != 0) GTEST_SKIP() << "only root becomes another user";
  test_peer reader("tcp");
  reader.ask("become 65534");
  const std::string said = way_of(reader);
  EXPECT_TRUE(said.starts_with("message ")) << said;
  EXPECT_THAT(said, HasSubstr("another user"));
  const std::string shared = way_of(reader, "shareable");
  EXPECT_TRUE(shared.starts_with("message ")) << shared;
}

TEST_F(Stranger, OfAnotherSpaceOfProcessNumbersAsksTheOwner) {
  const own_namespace processes({"--pid", "--fork", "--kill-child"});
  if (!processes.why_not().empty()) GTEST_SKIP() << processes.why_not();
  test_peer reader(
      child_process(own_namespace::program,
                    processes.line({sibling_program("ucxio-test-peer"), "tcp", "sleeping"})));
  const std::string said = way_of(reader);
  EXPECT_TRUE(said.starts_with("message ")) << said;
  EXPECT_THAT(said, HasSubstr("another container"));
}

/// It gets a descriptor, and needs no number.
TEST_F(Stranger, OfAnotherSpaceOfProcessNumbersMapsWhatIsShareable) {
  const own_namespace processes({"--pid", "--fork", "--kill-child"});
  if (!processes.why_not().empty()) GTEST_SKIP() << processes.why_not();
  test_peer reader(
      child_process(own_namespace::program,
                    processes.line({sibling_program("ucxio-test-peer"), "tcp", "sleeping"})));
  EXPECT_EQ(way_of(reader, "shareable"), "mapped ");
}

}  // namespace
}  // namespace ucx::test
