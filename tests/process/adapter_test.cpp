// Files of C, descriptors and positional files of a process that ends, or whose server does.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "support/temporary_directory.hpp"
#include "support/test_peer.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

class Adapters : public testing::Test {
 protected:
  const temporary_directory directory_;
};

TEST_F(Adapters, FileThatIsLeftOpenIsClosedByTheEndOfItsProgram) {
  server served;
  const publication store = served.publish_store(directory_ / "", {.writable = true});
  test_peer writer("tcp");
  writer.ask("leave_open " + served.url() + "/new");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "new"));
  writer.say("quit");
  EXPECT_EQ(writer.process().wait(30s), 0);
  EXPECT_EQ(content_of(directory_ / "new"), "left open");
}

TEST_F(Adapters, FileOfAKilledProgramDoesNotAppear) {
  server served;
  const publication store = served.publish_store(directory_ / "", {.writable = true});
  test_peer writer("tcp");
  writer.ask("leave_open " + served.url() + "/new");
  writer.process().kill();
  for (int i = 0; i < 1000 && served.statistics().clients > 0; ++i) {
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "new"));
}

}  // namespace
}  // namespace ucx::test
