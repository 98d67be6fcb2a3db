#include "ucx/remote_descriptor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

#include "support/bytes/hex.hpp"
#include "ucx/error.hpp"
#include "wire/wire.hpp"

namespace ucx {
namespace {

constexpr std::size_t access_at = 52;
constexpr std::size_t kind_at = 53;
constexpr std::size_t flags_at = 54;
constexpr std::size_t device_at = 55;
constexpr std::size_t address_at = 36;
constexpr std::size_t size_at = 44;
constexpr std::size_t key_length_at = 72;

remote_descriptor sample() {
  remote_descriptor made;
  made.region = 7;
  made.incarnation = 0x1122334455667788;
  made.generation = 3;
  made.address = 0x7f0012345678;
  made.size = std::uint64_t{5} << 30U;
  made.granted = access::read_write;
  made.kind = memory_kind::cuda_managed;
  made.shareable = true;
  for (std::size_t i = 0; i < made.host.size(); ++i)
    made.host[i] = static_cast<std::byte>(0xa0 + i);
  made.remote_key = {std::byte{0xde}, std::byte{0xad}, std::byte{0xbe}, std::byte{0xef},
                     std::byte{0x01}};
  return made;
}

std::error_code error_of(std::span<const std::byte> wire) {
  std::error_code ec;
  const remote_descriptor read = remote_descriptor::decode(wire, ec);
  EXPECT_TRUE(!ec || read == remote_descriptor());
  return ec;
}

/// Changes bytes and puts an honest checksum under them.
std::vector<std::byte> changed(std::vector<std::byte> wire, std::size_t at,
                               std::initializer_list<int> values) {
  for (const int value : values) wire.at(at++) = static_cast<std::byte>(value);
  wire.resize(wire.size() - 8);
  detail::wire_writer writer;
  writer.put(wire);
  writer.put(detail::checksum(wire));
  return writer.bytes();
}

TEST(RemoteDescriptor, SurvivesTheWire) {
  EXPECT_EQ(remote_descriptor::decode(sample().encode()), sample());
  EXPECT_EQ(remote_descriptor::decode(remote_descriptor().encode()), remote_descriptor());
}

TEST(RemoteDescriptor, SurvivesTheWireInEveryForm) {
  for (const access granted : {access::read, access::write, access::read_write}) {
    for (const memory_kind kind : {memory_kind::host, memory_kind::cuda, memory_kind::cuda_managed,
                                   memory_kind::rocm, memory_kind::other}) {
      for (const std::size_t length : {0U, 1U, 100U, 4096U}) {
        remote_descriptor made = sample();
        made.granted = granted;
        made.kind = kind;
        made.shareable = length % 2 == 0;
        made.remote_key.assign(length, std::byte{0x5a});
        EXPECT_EQ(remote_descriptor::decode(made.encode()), made);
      }
    }
  }
}

TEST(RemoteDescriptor, SurvivesTheWireWithAFileAndALoan) {
  for (const bool has_file : {false, true}) {
    remote_descriptor made = sample();
    if (has_file) made.memfd = {.process = 1, .descriptor = 2, .device = 3, .inode = 4};
    made.cma = {.process = 5, .record = 6, .token = 7};
    EXPECT_EQ(remote_descriptor::decode(made.encode()), made);
  }
}

TEST(RemoteDescriptor, LoanThatMakesNoSenseIsRefused) {
  remote_descriptor made = sample();
  made.cma = {.process = 0x7fffffff, .record = 1, .token = 1};
  EXPECT_FALSE(error_of(made.encode()));
  const auto refused = [&](const cma_handle& loan) {
    made.cma = loan;
    return error_of(made.encode()) == errc::bad_descriptor;
  };
  EXPECT_TRUE(refused({.process = 0x80000000, .record = 1, .token = 1}));
  EXPECT_TRUE(refused({.process = 1, .record = 0, .token = 1}));
  EXPECT_TRUE(refused({.process = 1, .record = 1, .token = 0}));
}

remote_descriptor sample_of_device() {
  remote_descriptor made = sample();
  made.kind = memory_kind::cuda;
  made.device = 1;
  made.address = 0;
  made.cma = {.process = 5, .record = 6, .token = 7};
  made.cuda_ipc.size = made.size + 4096;
  made.cuda_ipc.offset = 4096;
  for (std::size_t i = 0; i < made.cuda_ipc.bytes.size(); ++i) {
    made.cuda_ipc.bytes[i] = static_cast<std::byte>(0x40 + i);
  }
  return made;
}

TEST(RemoteDescriptor, SurvivesTheWireWithAHandle) {
  EXPECT_EQ(remote_descriptor::decode(sample_of_device().encode()), sample_of_device());
  const auto wire = sample_of_device().encode();
  EXPECT_THAT(test::to_hex(wire), testing::HasSubstr("40414243"));
  EXPECT_THAT(test::to_hex(wire), testing::HasSubstr("7c7d7e7f"
                                                     "0010004001000000"
                                                     "0010000000000000"));
}

TEST(RemoteDescriptor, WithAHandleCutOffOrChangedAnywhereIsBad) {
  auto wire = sample_of_device().encode();
  for (std::size_t length = 0; length < wire.size(); ++length) {
    ASSERT_EQ(error_of(std::span(wire).first(length)), errc::bad_descriptor) << length;
  }
  for (std::size_t at = 0; at < wire.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      const auto mask = static_cast<std::byte>(1U << bit);
      wire[at] ^= mask;
      ASSERT_EQ(error_of(wire), errc::bad_descriptor) << "byte " << at << " bit " << bit;
      wire[at] ^= mask;
    }
  }
}

TEST(RemoteDescriptor, HandleThatMakesNoSenseIsRefused) {
  const auto refused = [](const auto& change) {
    remote_descriptor made = sample_of_device();
    change(made);
    return error_of(made.encode()) == errc::bad_descriptor;
  };
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_FALSE(refused([](remote_descriptor&) {}));
  EXPECT_FALSE(refused([](remote_descriptor& made) { made.cuda_ipc.size = most; }));
  EXPECT_TRUE(refused([](remote_descriptor& made) { --made.cuda_ipc.size; }));
  EXPECT_TRUE(refused([](remote_descriptor& made) { ++made.cuda_ipc.offset; }));
  EXPECT_TRUE(refused([](remote_descriptor& made) { made.cuda_ipc.offset = most; }));
  EXPECT_TRUE(refused([](remote_descriptor& made) { made.cma = {}; }));
  EXPECT_TRUE(refused([](remote_descriptor& made) { made.kind = memory_kind::cuda_managed; }));
  EXPECT_TRUE(refused([](remote_descriptor& made) {
    made.kind = memory_kind::host;
    made.device = -1;
  }));
}

TEST(RemoteDescriptor, SurvivesTheWireWithDescriptors) {
  remote_descriptor made = sample_of_device();
  made.cuda_ipc.by_descriptors = true;
  EXPECT_EQ(remote_descriptor::decode(made.encode()), made);
  made.cuda_ipc = {.by_descriptors = true};  // made for no sharing
  EXPECT_EQ(remote_descriptor::decode(made.encode()), made);
  made.cma = {};
  EXPECT_EQ(remote_descriptor::decode(made.encode()), made);
  for (const memory_kind other : {memory_kind::host, memory_kind::cuda_managed}) {
    made.kind = other;
    made.device = -1;
    EXPECT_EQ(error_of(made.encode()), errc::bad_descriptor);
  }
}

// Bytes that no writer of ours would write, under an honest checksum.
TEST(RemoteDescriptor, WithAHandleOfNoAllocationIsBad) {
  const auto honest = sample_of_device().encode();
  const std::size_t size_of_allocation = honest.size() - 8 - 16;
  EXPECT_EQ(error_of(changed(honest, size_of_allocation, {0, 0, 0, 0, 0, 0, 0, 0})),
            errc::bad_descriptor);
  EXPECT_EQ(error_of(changed(honest, flags_at, {1 | 8})), errc::bad_descriptor);
  EXPECT_EQ(error_of(changed(honest, flags_at, {1 | 4})), errc::bad_descriptor);
}

remote_descriptor sample_for_adapters() {
  remote_descriptor made = sample_of_device();
  made.device_rma.worker = {std::byte{0x77}, std::byte{0x88}};
  made.device_rma.key = {std::byte{0x99}, std::byte{0xaa}, std::byte{0xbb}};
  made.device_rma.address = 0x7f00aabbcc00;
  return made;
}

TEST(RemoteDescriptor, SurvivesTheWireWithAKeyForAdapters) {
  const remote_descriptor made = sample_for_adapters();
  EXPECT_EQ(remote_descriptor::decode(made.encode()), made);
  EXPECT_THAT(test::to_hex(made.encode()), testing::HasSubstr("00ccbbaa007f0000"
                                                              "02000000"
                                                              "7788"
                                                              "03000000"
                                                              "99aabb"));
  remote_descriptor alone = made;
  alone.cma = {};
  alone.cuda_ipc = {};
  EXPECT_EQ(remote_descriptor::decode(alone.encode()), alone);
  const auto wire = made.encode();
  for (std::size_t length = 0; length < wire.size(); ++length) {
    ASSERT_EQ(error_of(std::span(wire).first(length)), errc::bad_descriptor) << length;
  }
}

TEST(RemoteDescriptor, KeyForAdaptersThatMakesNoSenseIsRefused) {
  const auto refused = [](const auto& change) {
    remote_descriptor made = sample_for_adapters();
    change(made);
    return error_of(made.encode()) == errc::bad_descriptor;
  };
  EXPECT_FALSE(refused([](remote_descriptor&) {}));
  EXPECT_FALSE(refused([](remote_descriptor& made) { made.device_rma.key.resize(4096); }));
  EXPECT_FALSE(refused([](remote_descriptor& made) { made.device_rma.worker.resize(16384); }));
  EXPECT_TRUE(refused([](remote_descriptor& made) { made.device_rma.worker.clear(); }));
  EXPECT_TRUE(refused([](remote_descriptor& made) { made.device_rma.address = 0; }));
  EXPECT_TRUE(refused([](remote_descriptor& made) { made.device_rma.address = ~made.size + 1; }));
  EXPECT_TRUE(refused([](remote_descriptor& made) { made.kind = memory_kind::cuda_managed; }));
  remote_descriptor longer = sample_for_adapters();
  longer.device_rma.key.resize(4097);
  EXPECT_THROW(longer.encode(), error);
  longer = sample_for_adapters();
  longer.device_rma.worker.resize(16385);
  EXPECT_THROW(longer.encode(), error);
  // No writer of ours says so: a key of no bytes, under an honest checksum.
  const auto honest = sample_for_adapters().encode();
  EXPECT_EQ(error_of(changed(honest, honest.size() - 8 - 7, {0, 0, 0, 0})), errc::bad_descriptor);
}

// The format is a promise to other processes: if this fails, the version has to change.
TEST(RemoteDescriptor, HasTheDocumentedBytes) {
  EXPECT_EQ(test::to_hex(sample().encode()),
            "55585244"
            "0100"
            "0000"
            "59000000"  // letters, version, reserved, length
            "0700000000000000"
            "8877665544332211"
            "0300000000000000"
            "78563412007f0000"
            "0000004001000000"
            "03"
            "02"
            "01"
            "00"  // access, kind, flags, reserved
            "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf"
            "05000000"
            "deadbeef01"
            "61c11de839b9c0d2");
}

TEST(RemoteDescriptor, CutOffAnywhereIsBad) {
  const auto wire = sample().encode();
  for (std::size_t length = 0; length < wire.size(); ++length) {
    ASSERT_EQ(error_of(std::span(wire).first(length)), errc::bad_descriptor) << length;
    ASSERT_EQ(error_of(std::span(wire).last(length)), errc::bad_descriptor) << length;
  }
}

TEST(RemoteDescriptor, LengthenedByAnythingIsBad) {
  auto wire = sample().encode();
  for (int i = 0; i < 300; ++i) {
    wire.push_back(static_cast<std::byte>(i));
    ASSERT_EQ(error_of(wire), errc::bad_descriptor) << i;
  }
}

TEST(RemoteDescriptor, WithAnyBitFlippedIsBad) {
  auto wire = sample().encode();
  for (std::size_t at = 0; at < wire.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      const auto mask = static_cast<std::byte>(1U << bit);
      wire[at] ^= mask;
      ASSERT_EQ(error_of(wire), errc::bad_descriptor) << "byte " << at << " bit " << bit;
      wire[at] ^= mask;
    }
  }
  EXPECT_FALSE(error_of(wire));
}

TEST(RemoteDescriptor, OfRandomBytesIsBad) {
  std::mt19937_64 random(20240607);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> wire(random() % 200);
    for (auto& each : wire) each = static_cast<std::byte>(random());
    ASSERT_EQ(error_of(wire), errc::bad_descriptor);
  }
}

// Whatever an honest sender of another program could put under an honest checksum.
TEST(RemoteDescriptor, WithRandomFieldsNeverMisleads) {
  std::mt19937_64 random(7);
  const auto honest = sample().encode();
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::size_t at = 12 + random() % (honest.size() - 20);
    const auto wire = changed(honest, at, {static_cast<int>(random() % 256)});
    std::error_code ec;
    const remote_descriptor read = remote_descriptor::decode(wire, ec);
    if (ec) {
      ASSERT_TRUE(ec == errc::bad_descriptor || ec == errc::version_mismatch) << ec.message();
    } else {
      ASSERT_EQ(read.encode(), wire);
      ++accepted;
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 20000);
}

TEST(RemoteDescriptor, WithAnUnknownEnumeratorIsBad) {
  const auto honest = sample().encode();
  for (int value = 0; value < 256; ++value) {
    const bool known_access = value >= 1 && value <= 3;
    EXPECT_EQ(!error_of(changed(honest, access_at, {value})), known_access) << value;
    const bool known_kind = value <= 3 || value == 255;
    EXPECT_EQ(!error_of(changed(honest, kind_at, {value})), known_kind) << value;
    const bool known_flags = value <= 1 || value == 32;
    EXPECT_EQ(!error_of(changed(honest, flags_at, {value})), known_flags) << value;
  }
}

TEST(RemoteDescriptor, WithAPropertyOfLaterVersionsIsOfAnother) {
  const auto honest = sample().encode();
  EXPECT_EQ(error_of(changed(honest, flags_at, {1 | 128})), errc::version_mismatch);
  EXPECT_EQ(error_of(changed(honest, flags_at, {128})), errc::version_mismatch);
}

// By the key of a peer that has UCX alone.

std::error_code error_of_key(std::span<const std::byte> key, std::uint64_t address = 4096,
                             std::uint64_t size = 10, access granted = access::read,
                             memory_kind memory = memory_kind::host) {
  std::error_code ec;
  remote_descriptor::of_key(address, size, key, granted, memory, ec);
  return ec;
}

TEST(RemoteDescriptor, OfAKeyIsForeignAndTravels) {
  const std::vector<std::byte> key(4096, std::byte{7});
  const remote_descriptor made = remote_descriptor::of_key(4096, 10, key, access::read_write);
  EXPECT_TRUE(made.foreign);
  EXPECT_EQ(made.address, 4096U);
  EXPECT_EQ(made.size, 10U);
  EXPECT_EQ(made.granted, access::read_write);
  EXPECT_EQ(made.remote_key, key);
  EXPECT_EQ(remote_descriptor::decode(made.encode()), made);
  EXPECT_EQ(to_string(made), "region 0: 10 bytes, read_write, host, foreign");
}

TEST(RemoteDescriptor, OfAKeyThatCanBeNoneIsRefused) {
  const std::vector<std::byte> key(4097);
  const auto some = std::span(key).first(20);
  EXPECT_EQ(error_of_key({}), errc::bad_descriptor);
  EXPECT_EQ(error_of_key(key), errc::bad_descriptor);
  EXPECT_FALSE(error_of_key(some));
  EXPECT_EQ(error_of_key(some, 4096, ~std::uint64_t{0}), errc::invalid_argument);
  EXPECT_EQ(error_of_key(some, 4096, 10, static_cast<access>(4)), errc::invalid_argument);
  EXPECT_EQ(error_of_key(some, 4096, 10, access::read, static_cast<memory_kind>(77)),
            errc::invalid_argument);
}

// UCX alone reaches it: it has nothing of what this library would use.
TEST(RemoteDescriptor, ThatIsForeignHasAKeyAndNothingElse) {
  const std::vector<std::byte> key(20);
  const auto honest = remote_descriptor::of_key(4096, 10, key, access::read).encode();
  EXPECT_FALSE(error_of(honest));
  EXPECT_EQ(error_of(changed(honest, flags_at, {32 | 1})), errc::bad_descriptor);
  remote_descriptor keyless = remote_descriptor::of_key(4096, 10, key, access::read);
  keyless.remote_key.clear();
  EXPECT_EQ(error_of(keyless.encode()), errc::bad_descriptor);
}

TEST(RemoteDescriptor, TellsTheDeviceOfDeviceMemoryAlone) {
  const auto of_device = [](memory_kind kind, int device) {
    remote_descriptor made = sample();
    made.kind = kind;
    made.device = device;
    return made;
  };
  for (int value = 0; value < 256; ++value) {
    const auto tensor = changed(of_device(memory_kind::cuda, -1).encode(), device_at, {value});
    std::error_code ec;
    const remote_descriptor read = remote_descriptor::decode(tensor, ec);
    EXPECT_EQ(!ec, value < 255) << value;
    EXPECT_EQ(read, ec ? remote_descriptor() : of_device(memory_kind::cuda, value - 1));
    const auto host = changed(of_device(memory_kind::host, -1).encode(), device_at, {value});
    EXPECT_EQ(!error_of(host), value == 0) << value;
  }
  for (const int device : {0, 1, 253}) {
    const remote_descriptor made = of_device(memory_kind::cuda_managed, device);
    EXPECT_EQ(remote_descriptor::decode(made.encode()), made);
  }
  EXPECT_EQ(remote_descriptor::decode(of_device(memory_kind::cuda, 254).encode()).device, -1);
  EXPECT_EQ(remote_descriptor::decode(of_device(memory_kind::host, 1).encode()).device, -1);
  EXPECT_NE(to_string(of_device(memory_kind::cuda, 3)).find("cuda device 3"), std::string::npos);
}

TEST(RemoteDescriptor, ThatEndsBeyondTheAddressSpaceIsBad) {
  const auto honest = sample().encode();
  const auto all = changed(honest, address_at, {255, 255, 255, 255, 255, 255, 255, 255});
  EXPECT_EQ(error_of(all), errc::bad_descriptor);
  const auto huge = changed(honest, size_at, {255, 255, 255, 255, 255, 255, 255, 255});
  EXPECT_EQ(error_of(huge), errc::bad_descriptor);

  remote_descriptor last = sample();
  last.address = std::numeric_limits<std::uint64_t>::max() - last.size;
  EXPECT_EQ(remote_descriptor::decode(last.encode()), last);
  ++last.address;
  EXPECT_THROW(last.encode(), error);
}

TEST(RemoteDescriptor, WithAKeyLengthThatDoesNotFitIsBad) {
  const auto honest = sample().encode();
  for (const int value : {0, 4, 6, 255}) {
    EXPECT_EQ(error_of(changed(honest, key_length_at, {value})), errc::bad_descriptor) << value;
  }
  EXPECT_EQ(error_of(changed(honest, key_length_at, {255, 255, 255, 255})), errc::bad_descriptor);
}

TEST(RemoteDescriptor, WithTooLongAKeyIsNeitherWrittenNorRead) {
  remote_descriptor made = sample();
  made.remote_key.assign(4097, std::byte{1});
  try {
    made.encode();
    FAIL() << "written";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::invalid_argument);
    EXPECT_NE(std::string(failure.what()).find("4097"), std::string::npos) << failure.what();
  }

  made.remote_key.resize(4096);
  auto wire = made.encode();
  wire.insert(wire.end() - 8, std::byte{1});
  const auto length = wire.size();
  wire = changed(wire, 8, {static_cast<int>(length & 255U), static_cast<int>(length >> 8U)});
  wire = changed(wire, key_length_at, {0x01, 0x10});
  EXPECT_EQ(error_of(wire), errc::bad_descriptor);
}

TEST(RemoteDescriptor, OfAnotherVersionNamesBoth) {
  const auto wire = changed(sample().encode(), 4, {9, 0});
  EXPECT_EQ(error_of(wire), errc::version_mismatch);
  try {
    remote_descriptor::decode(wire);
    FAIL() << "read";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::version_mismatch);
    const std::string text = failure.what();
    EXPECT_NE(text.find("version 9"), std::string::npos) << text;
    EXPECT_NE(text.find("version 1"), std::string::npos) << text;
  }
}

TEST(RemoteDescriptor, OfAnotherVersionThatIsDamagedIsBad) {
  auto wire = changed(sample().encode(), 4, {9, 0});
  wire[60] ^= std::byte{1};
  EXPECT_EQ(error_of(wire), errc::bad_descriptor);
}

TEST(RemoteDescriptor, ThrowsWhatTheOtherFormReports) {
  try {
    remote_descriptor::decode({});
    FAIL() << "read";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::bad_descriptor);
    EXPECT_NE(std::string(failure.what()).find("descriptor of 0 bytes"), std::string::npos);
  }
}

TEST(RemoteDescriptor, ClearsTheErrorOfAnEarlierCall) {
  std::error_code ec = errc::timed_out;
  remote_descriptor::decode(sample().encode(), ec);
  EXPECT_FALSE(ec);
}

TEST(RemoteDescriptor, PrintsItselfWithoutItsKey) {
  EXPECT_EQ(to_string(sample()), "region 3: 5368709120 bytes, read_write, cuda_managed, shareable");
  remote_descriptor plain;
  EXPECT_EQ(to_string(plain), "region 0: 0 bytes, read, host");
  plain.granted = access::write;
  EXPECT_EQ(to_string(plain), "region 0: 0 bytes, write, host");
}

}  // namespace
}  // namespace ucx
