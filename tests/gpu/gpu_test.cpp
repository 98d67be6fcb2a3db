// Memory of every kind on either side, by the CUDA driver that is there: a real one, or for ctest
// one that is none. Public names only, and nothing that a real driver could not recover from.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include "gpu/gpu_memory.hpp"
#include "support/bytes/hex.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/process_reading.hpp"
#include "support/process/test_peer.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/access.hpp"
#include "ucx/buffer.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"
#include "ucx/stream.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

constexpr std::size_t tensor_size = 5'000'003;

using kinds = std::tuple<memory_kind, memory_kind>;

/// The server's memory is of the first kind, and the user's here of the second.
class MemoryOfKinds : public testing::TestWithParam<kinds> {
 protected:
  static memory_kind there() { return std::get<0>(GetParam()); }
  static memory_kind here() { return std::get<1>(GetParam()); }

  buffer owned_ = filled(there(), 1, tensor_size);
  buffer mine_{pool_of(here()), tensor_size};
  ucx_server server_;
  publication published_ = server_.publish("tensor", owned_.bytes(), access::read_write);
  client client_{server_.url()};
};

INSTANTIATE_TEST_SUITE_P(Each, MemoryOfKinds,
                         testing::Combine(testing::ValuesIn(gpu_kinds),
                                          testing::ValuesIn(gpu_kinds)),
                         [](const auto& chosen) {
                           return std::string(to_string(std::get<0>(chosen.param))) + "_to_" +
                                  std::string(to_string(std::get<1>(chosen.param)));
                         });

TEST_P(MemoryOfKinds, IsWhereItSays) {
  EXPECT_EQ(place_of(owned_.data()).kind, there());
  EXPECT_EQ(place_of(mine_.data() + tensor_size - 1).kind, here());
}

TEST_P(MemoryOfKinds, IsReadAndWrittenAtOffsets) {
  remote_region region = client_.open("tensor", access::read_write);
  region.read_at(0, mine_.bytes());
  EXPECT_TRUE(holds(mine_.bytes(), 1));
  std::minstd_rand random(7);
  for (int i = 0; i < 20; ++i) {
    const std::size_t length = 1 + random() % 70'000;
    const std::size_t at = random() % (tensor_size - length);
    const std::span<std::byte> part = mine_.bytes().subspan(random() % 1000, length);
    region.read_at(at, part);
    ASSERT_TRUE(holds(part, 1, at)) << length << " bytes at " << at;
  }
  const buffer other = filled(here(), 2, tensor_size);
  region.write_at(0, other.bytes());
  region.flush();
  EXPECT_TRUE(holds(owned_.bytes(), 2));
}

TEST_P(MemoryOfKinds, IsAStream) {
  ucx::iostream stream(client_.open("tensor", access::read_write));
  auto* const chars = reinterpret_cast<char*>(mine_.data());
  for (std::size_t at = 0; at < tensor_size;) {
    const std::size_t length = std::min<std::size_t>(at % 3 == 0 ? 77 : 700'001, tensor_size - at);
    stream.read(chars + at, static_cast<std::streamsize>(length));
    at += length;
  }
  ASSERT_TRUE(stream);
  EXPECT_TRUE(holds(mine_.bytes(), 1));
  const buffer other = filled(here(), 3, tensor_size);
  stream.seekp(0);
  stream.write(reinterpret_cast<const char*>(other.data()), tensor_size);
  stream.flush();
  ASSERT_TRUE(stream);
  EXPECT_TRUE(holds(owned_.bytes(), 3));
}

TEST_P(MemoryOfKinds, IsReadAndWrittenByManyAtOnce) {
  remote_region region = client_.open("tensor", access::read_write);
  constexpr std::size_t piece = 100'000;
  std::vector<request> running;
  for (std::size_t at = 0; at + piece <= tensor_size; at += piece) {
    running.push_back(region.start_read_at(at, mine_.bytes().subspan(at, piece)));
  }
  for (request& each : running) each.wait();
  EXPECT_TRUE(holds(mine_.bytes().first(tensor_size / piece * piece), 1));
}

class MemoryOfKind : public testing::TestWithParam<memory_kind> {};

INSTANTIATE_TEST_SUITE_P(Each, MemoryOfKind, testing::ValuesIn(gpu_kinds),
                         [](const auto& chosen) { return std::string(to_string(chosen.param)); });

TEST_P(MemoryOfKind, IsReadAsText) {
  const std::string text = "3 4.5 words\nsecond line\n";
  buffer owned(pool_of(GetParam()), text.size());
  copy_memory(owned.data(), text.data(), text.size());
  ucx_server serving;
  const auto published = serving.publish("text", owned.bytes(), access::read);
  ucx::ifstream in(published.url());
  int number = 0;
  double real = 0;
  std::string rest;
  std::string second;
  in >> number >> real;
  std::getline(in, rest);
  std::getline(in, second);
  ASSERT_TRUE(in) << in.error_message();
  EXPECT_EQ(number, 3);
  EXPECT_EQ(real, 4.5);
  EXPECT_EQ(rest + second, " wordssecond line");
}

TEST_P(MemoryOfKind, IsSavedInAFileAndReadFromIt) {
  const temporary_directory directory;
  ucx_server serving;
  const auto store = serving.publish_store(directory / "", {.writable = true});
  const std::string url = serving.url("checkpoint");
  const buffer saved = filled(GetParam(), 5, tensor_size);
  ucx::ofstream out(url, std::ios::binary);
  out.write(reinterpret_cast<const char*>(saved.data()), tensor_size);
  out.close();
  ASSERT_TRUE(out) << out.error_message();
  buffer again(pool_of(GetParam()), tensor_size);
  ucx::ifstream in(url, std::ios::binary);
  in.read(reinterpret_cast<char*>(again.data()), tensor_size);
  ASSERT_TRUE(in) << in.error_message();
  EXPECT_TRUE(holds(again.bytes(), 5));
}

/// The owner is another process, on the same device.
class MemoryOfAnotherProcess : public testing::TestWithParam<memory_kind> {
 protected:
  void SetUp() override {
    if (!system_reads_children()) GTEST_SKIP() << "the system lets no process read another one";
  }
  static context_options over_tcp() {
    context_options options;
    options.transports = {"tcp"};
    options.devices = {"lo"};
    return options;
  }
  remote_region open(const std::string& what) {
    return remote_region(connection_, remote_descriptor::decode(from_hex(owner_.ask(what))));
  }
  remote_region allocated() {
    return open("allocate " + std::to_string(tensor_size) + " read_write 1 device");
  }

  test_peer owner_{"lent"};
  context context_{over_tcp()};
  worker worker_{context_, {.progress = progress_mode::sleeping_thread}};
  endpoint connection_{worker_, owner_.listen()};
  buffer mine_{pool_of(GetParam()), tensor_size};
};

INSTANTIATE_TEST_SUITE_P(Each, MemoryOfAnotherProcess, testing::ValuesIn(gpu_kinds),
                         [](const auto& chosen) { return std::string(to_string(chosen.param)); });

TEST_P(MemoryOfAnotherProcess, IsReadWithoutIt) {
  remote_region region = allocated();
  region.read_at(0, mine_.bytes());
  EXPECT_TRUE(holds(mine_.bytes(), 1));
  if (region.transfer_method() != transfer_method::cuda_ipc)
    GTEST_SKIP() << "staged: " << region.why_not(transfer_method::cuda_ipc);
  EXPECT_EQ(worker_.staging().direct_bytes, tensor_size);
  owner_.process().stop();
  region.read_at(1000, mine_.bytes().first(100'000));
  owner_.process().resume();
  EXPECT_TRUE(holds(mine_.bytes().first(100'000), 1, 1000));
}

TEST_P(MemoryOfAnotherProcess, IsWrittenWithoutIt) {
  remote_region region = allocated();
  const buffer other = filled(GetParam(), 2, tensor_size);
  region.write_at(0, other.bytes());
  region.flush();
  EXPECT_EQ(owner_.ask("holds 2"), "yes");
  if (region.transfer_method() != transfer_method::cuda_ipc)
    GTEST_SKIP() << "staged: " << region.why_not(transfer_method::cuda_ipc);
  EXPECT_EQ(worker_.staging().direct_bytes, tensor_size);
}

TEST_P(MemoryOfAnotherProcess, IsNoMoreWhenItIsTakenBack) {
  remote_region region = open("lend " + std::to_string(tensor_size) + " 3 device");
  region.read_at(0, mine_.bytes());
  EXPECT_TRUE(holds(mine_.bytes(), 3));
  owner_.ask("take_back");
  std::error_code ec;
  region.read_at(0, mine_.bytes(), {}, ec);
  EXPECT_EQ(ec, errc::revoked);
}

TEST_P(MemoryOfAnotherProcess, ThatIsKilledIsALostConnection) {
  remote_region region = allocated();
  region.read_at(0, mine_.bytes());
  owner_.process().kill();
  std::error_code ec;
  region.read_at(0, mine_.bytes(), {}, ec);
  EXPECT_EQ(ec, errc::connection_reset);
  const buffer other = filled(GetParam(), 4, tensor_size);
  EXPECT_TRUE(holds(other.bytes(), 4));
}

/// The owner has it by cuMemMap, or of a pool, and shares it by descriptors.
TEST_P(MemoryOfAnotherProcess, IsReadWhereItIsSharedByDescriptors) {
  if (!system_reads_children()) GTEST_SKIP() << "the system lets no process read another one";
  const buffer used = filled(memory_kind::cuda, 1, 1);  // so that this process uses a device
  for (const char* const what : {"mapped", "pooled"}) {
    const remote_descriptor described = remote_descriptor::decode(from_hex(
        owner_.ask(std::string("share ") + what + ' ' + std::to_string(tensor_size) + " 5")));
    remote_region region(connection_, described);
    region.read_at(0, mine_.bytes());
    EXPECT_TRUE(holds(mine_.bytes(), 5)) << what;
    ASSERT_EQ(region.transfer_method(), transfer_method::cuda_ipc)
        << what << " staged: " << region.why_not(transfer_method::cuda_ipc);
    const std::uint64_t direct = worker_.staging().direct_bytes;
    remote_region again(connection_, described);
    again.read_at(1000, mine_.bytes().first(100'000));
    again.close();
    region.read_at(1000, mine_.bytes().first(100'000));
    EXPECT_TRUE(holds(mine_.bytes().first(100'000), 5, 1000)) << what;
    EXPECT_EQ(worker_.staging().direct_bytes, direct + 200'000) << what;
    owner_.ask("take_back");
    std::error_code ec;
    region.read_at(0, mine_.bytes(), {}, ec);
    EXPECT_EQ(ec, errc::revoked) << what;
  }
}

TEST(MemoryOfDevices, IsReadFromOneIntoAnother) {
  std::error_code ec;
  memory_pool second({memory_kind::cuda, 1}, {}, ec);
  if (ec) GTEST_SKIP() << "there is one device only";
  buffer owned(second, tensor_size);
  copy_memory(owned.data(), pattern(tensor_size, 6).data(), tensor_size);
  EXPECT_EQ(place_of(owned.data()), (memory_place{memory_kind::cuda, 1}));
  ucx_server serving;
  const auto published = serving.publish("far", owned.bytes(), access::read);
  buffer mine(pool_of(memory_kind::cuda), tensor_size);
  client asking(serving.url());
  asking.open("far").read_at(0, mine.bytes());
  EXPECT_TRUE(holds(mine.bytes(), 6));
}

TEST(MemoryOfDevices, IsRefusedBeyondWhatThereIs) {
  ucx_server serving;
  std::error_code ec;
  const auto huge =
      serving.allocate("huge", std::size_t{1} << 46U, access::read, {memory_kind::cuda, 0}, ec);
  EXPECT_EQ(ec, errc::no_memory) << ec.message();
  const auto nowhere =
      serving.allocate("nowhere", 1000, access::read, {memory_kind::cuda, 999}, ec);
  EXPECT_EQ(ec, errc::not_supported) << ec.message();
}

}  // namespace
}  // namespace ucx::test

namespace {

/// Returns whether the system has a device for CUDA, whatever the driver says.
bool system_has_gpu() {
  for (const char* each : {"/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg"}) {
    if (::access(each, F_OK) == 0) return true;
  }
  return false;
}

}  // namespace

/// Ends with 77 where there is no CUDA device, and with 1 where there is one that can not be used.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::error_code ec;
  std::string why;
  try {
    const ucx::memory_pool any({ucx::memory_kind::cuda, 0});
  } catch (const ucx::error& failed) {
    ec = failed.code();
    why = failed.what();
  }
  if (!ec || GTEST_FLAG_GET(list_tests)) return RUN_ALL_TESTS();
  const bool is_missing = ec == ucx::errc::not_supported && !system_has_gpu();
  std::fprintf(stderr, "%s (%s): nothing was tested\n",
               is_missing ? "there is no CUDA device" : "the CUDA device can not be used",
               why.c_str());
  return is_missing ? 77 : 1;
}
