// Files, of this machine and of a server, out of and into the memory of a device.
#include "support/bytes/byte_sizes.hpp"
#include "ucx/fstream.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <ios>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/kind_memory.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/files/temporary_file.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/access.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/many_files.hpp"
#include "ucx/publication.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

class DeviceFile : public testing::TestWithParam<memory_kind> {
 protected:
  const cuda_program program_;
};

TEST_P(DeviceFile, OfThisMachineIsCopiedOnce) {
  const temporary_file file;
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{100}, std::size_t{5000}, 3 * mib + 7}) {
    kind_memory from(GetParam(), size, size);
    kind_memory into(GetParam(), size);
    const copied_bytes copied;
    ucx::ofstream out(file.path(), std::ios::binary | std::ios::trunc);
    ASSERT_TRUE(out.write(from.characters(), static_cast<std::streamsize>(size)));
    out.close();
    ASSERT_TRUE(out) << out.error_message();
    ucx::ifstream in(file.path(), std::ios::binary);
    ASSERT_TRUE(in.read(into.characters(), static_cast<std::streamsize>(size)));
    EXPECT_EQ(in.get(), std::char_traits<char>::eof());
    EXPECT_EQ(copied.from_device(), is_of_driver(GetParam()) ? size : 0);
    EXPECT_EQ(copied.to_device(), is_of_driver(GetParam()) ? size : 0);
    EXPECT_TRUE(into.holds(size));
  }
}

TEST_P(DeviceFile, OfThisMachineGoesOnBetweenTextAndMemory) {
  const temporary_file file;
  kind_memory memory(GetParam(), 5000, 2);
  ucx::fstream both(file.path(), std::ios::in | std::ios::out | std::ios::binary | std::ios::trunc);
  both << "head\n";
  both.write(memory.characters(), 5000);
  both << "tail\n";
  ASSERT_TRUE(both.flush());
  EXPECT_EQ(content_of(file.path()).size(), 5010U);
  both.seekg(0);
  std::string line;
  std::getline(both, line);
  EXPECT_EQ(line, "head");
  memory.fill(99);
  both.read(memory.characters(), 5000);
  EXPECT_TRUE(memory.holds(2));
  std::getline(both, line);
  EXPECT_EQ(line, "tail");
  both.seekg(5005);
  both.read(memory.characters(), 5000);
  EXPECT_EQ(both.gcount(), 5);
  EXPECT_TRUE(both.eof());
  EXPECT_FALSE(both.bad());
}

TEST_P(DeviceFile, OfAServerIsRead) {
  const temporary_file file(2 * mib);
  ucx_server server;
  const publication lent = server.publish_file("file", file.path(), access::read);
  kind_memory memory(GetParam(), 2 * mib);
  ucx::ifstream in(server.url("file"), std::ios::binary);
  ASSERT_TRUE(in.is_open()) << in.error_message();
  ASSERT_TRUE(in.read(memory.characters(), 2 * mib)) << in.error_message();
  EXPECT_TRUE(memory.holds(0));
}

TEST_P(DeviceFile, OfAServersStoreIsWrittenAmongManyThatAreShort) {
  const temporary_directory directory;
  ucx_server server;
  store_options writable;
  writable.writable = true;
  const publication store = server.publish_store(directory / "", writable);
  client writer(server.url());
  kind_memory memory(GetParam(), 5000, 6);
  const std::vector<std::byte> host = pattern(100, 7);
  const std::vector<short_file> files{{"a", host}, {"b", memory.bytes()}, {"c", host}};
  const copied_bytes copied;
  for (const std::error_code each : write_many(writer, files)) EXPECT_FALSE(each) << each.message();
  EXPECT_EQ(copied.from_device(), is_of_driver(GetParam()) ? 5000U : 0U);
  const std::string content = content_of(directory / "b");
  EXPECT_TRUE(holds_pattern(std::as_bytes(std::span(content)), 6));
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceFile, testing::ValuesIn(every_kind), name_of_kind);

class DeviceFileInTrouble : public testing::Test {
 protected:
  const cuda_program program_;
};

TEST_F(DeviceFileInTrouble, CopyThatFailsLeavesTheBytesToTheNextRead) {
  const temporary_file file(3 * mib);
  kind_memory into(memory_kind::cuda, 3 * mib);
  ucx::ifstream in(file.path(), std::ios::binary);
  fake_cuda_fail("copy", 0, 1, 719);
  in.read(into.characters(), 3 * mib);
  EXPECT_TRUE(in.bad());
  EXPECT_FALSE(in.eof());
  EXPECT_EQ(in.error(), errc::io_error);
  EXPECT_NE(in.error_message().find(file.path().string()), std::string::npos);
  EXPECT_NE(in.error_message().find("reading into a device"), std::string::npos);
  in.clear();
  EXPECT_EQ(in.tellg(), std::streampos(0));
  ASSERT_TRUE(in.read(into.characters(), 3 * mib));
  EXPECT_TRUE(into.holds(0));
}

TEST_F(DeviceFileInTrouble, CopyThatFailsIsAWriteThatFails) {
  const temporary_file file;
  kind_memory from(memory_kind::cuda, 3 * mib, 4);
  ucx::ofstream out(file.path(), std::ios::binary);
  fake_cuda_fail("copy", 1, 1, 719);
  out.write(from.characters(), 3 * mib);
  EXPECT_TRUE(out.bad());
  EXPECT_EQ(out.error(), errc::io_error);
  EXPECT_NE(out.error_message().find("writing out of a device"), std::string::npos);
  out.clear();
  EXPECT_EQ(out.tellp(), std::streampos(mib)) << "what was written before";
}

TEST_F(DeviceFileInTrouble, FileThatIsNotOpenTouchesNothing) {
  kind_memory memory(memory_kind::cuda, 100, 4);
  ucx::fstream none;
  none.read(memory.characters(), 100);
  EXPECT_EQ(none.gcount(), 0);
  EXPECT_EQ(none.error(), errc::closed);
  none.clear();
  none.write(memory.characters(), 100);
  EXPECT_FALSE(none);
  EXPECT_TRUE(memory.holds(4));
}

TEST_F(DeviceFileInTrouble, DeviceThatIsFullOfAFileSaysErrno) {
  kind_memory from(memory_kind::cuda, 100'000, 4);
  ucx::ofstream out("/dev/full", std::ios::binary);
  if (!out.is_open()) GTEST_SKIP() << "no /dev/full: " << out.error_message();
  out.write(from.characters(), 100'000);
  EXPECT_TRUE(out.bad());
  EXPECT_EQ(out.error(), std::errc::no_space_on_device);
}

}  // namespace
}  // namespace ucx::test
