// One-sided access, by the rows D1 to D20 of docs/explanation/comparisons.md, and the rows of
// buffers.
#include <gtest/gtest.h>
#include <ucp/api/ucp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#include "support/basics/effort.hpp"
#include "support/basics/sanitizer.hpp"
#include "support/bytes/pattern.hpp"
#include "support/bytes/sparse_memory.hpp"
#include "support/process/process_reading.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/network.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/remote_atomic.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most = effort(std::size_t{16} << 20U, std::size_t{5} << 20U);
constexpr std::size_t sizes[] = {0, 1, 1024, 2048, std::size_t{1} << 20U, most};
constexpr std::size_t region_size = most + 4096;

class ConformanceD : public testing::TestWithParam<pair_options> {
 protected:
  void SetUp() override {
    if (const std::string why = pair_.why_not_forced(); !why.empty()) GTEST_SKIP() << why;
  }

  bool messages() { return pair_.options.over != route::shared_memory; }

  /// The owner sends under its worker's lock, which this takes. ThreadSanitizer follows no sockets,
  /// and would see a race with what the test does next.
  void come_after_the_owner() { pair_.owner->attributes(); }

  connected_pair pair_{GetParam()};
  memory_region owned_ = pair_.allocate(region_size);
  remote_region region_ = pair_.open(owned_);
};

TEST_P(ConformanceD, D1_D3_AllocatesMemoryOfAKnownKind) {
  EXPECT_EQ(owned_.size(), region_size);
  EXPECT_EQ(owned_.place().kind, memory_kind::host);
  EXPECT_TRUE(all_bytes_are(owned_.bytes().first(4096), std::byte{0}));
  if (!includes(pair_.owner_context->features(), feature::rma)) return;  // over sockets
  // UCX has registered all of it.
  ASSERT_NE(owned_.native_handle(), nullptr);
  ucp_mem_attr_t told = {};
  told.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
  ASSERT_EQ(ucp_mem_query(owned_.native_handle(), &told), UCS_OK);
  const auto* const begin = static_cast<const std::byte*>(told.address);
  EXPECT_LE(begin, owned_.bytes().data());
  EXPECT_GE(begin + told.length, owned_.bytes().data() + region_size);
  EXPECT_FALSE(owned_.descriptor().remote_key.empty());
}

/// Within one host and without messages, from UCX 1.22 on.
bool reads_callers_memory(const context& asked) {
  return ucx_version() >= version_number{1, 22, 0} && has_cma(asked);
}

TEST_P(ConformanceD, D2_MapsTheCallersMemory) {
  std::vector<std::byte> mine = pattern(5000, 2);
  const memory_region mapped(*pair_.owner_context, mine,
                             messages() ? access::read_write : access::read);
  EXPECT_EQ(mapped.bytes().data(), mine.data());
  std::vector<std::byte> into(5000);
  if (!messages() && !reads_callers_memory(pair_.reader_context())) {
    std::error_code ec;
    const remote_region none(*pair_.connection, mapped.descriptor(), {}, ec);
    EXPECT_EQ(ec, errc::feature_disabled) << "without messages it has to be memory of UCX's";
    return;
  }
  remote_region region = pair_.open(mapped);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 2));
  come_after_the_owner();
  std::ranges::fill(mine, std::byte{7});
  region.read_at(4000, std::span(into).first(1000));
  EXPECT_TRUE(all_bytes_are(std::span(into).first(1000), std::byte{7})) << "it is no copy";
  if (!messages()) return;
  region.write_at(1000, pattern(500, 3));
  region.flush();
  EXPECT_TRUE(holds_pattern(std::span(mine).subspan(1000, 500), 3));
}

/// With messages, the owner or its UCX writes where UCX alone may not.
TEST(ConformanceDOfOneHost, D2_CallersMemoryIsReadAndWritten) {
  context_options options = context_options_for(route::shared_memory);
  options.features = feature::rma | feature::am | feature::wakeup;
  const context there(options);
  const context here(options);
  worker owner(there, {.progress = progress_mode::sleeping_thread});
  const worker reader(here);
  endpoint connection(reader, owner.address());
  connection.wait_connected();
  std::vector<std::byte> mine = pattern(500'000, 2);
  const memory_region mapped(there, std::span(mine), access::read_write);
  EXPECT_EQ(mapped.bytes().data(), mine.data());
  remote_region region(connection, mapped.descriptor());
  std::vector<std::byte> into(mine.size());
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 2));
  region.write_at(1000, pattern(400'000, 3));
  region.flush();
  owner.attributes();  // behind the owner's round, for ThreadSanitizer
  EXPECT_TRUE(holds_pattern(std::span(mine).first(1000), 2));
  EXPECT_TRUE(holds_pattern(std::span(mine).subspan(1000, 400'000), 3));
}

TEST_P(ConformanceD, G3_HandlesServeUcxsOwnCalls) {
  fill_pattern(owned_.bytes().first(10'000), 4);
  const bool by_rma = region_.transfer_method() == transfer_method::rma;
  EXPECT_EQ(region_.native_key() != nullptr, by_rma);
  if (!by_rma || (GetParam().reader != progress_mode::caller && !pair_.to_itself())) return;
  if (pair_.to_itself() && GetParam().owner != progress_mode::caller) return;
  std::vector<std::byte> into(10'000);
  const ucp_request_param_t params = {};
  ucs_status_ptr_t const begun =
      ucp_get_nbx(pair_.connection->native_handle(), into.data(), into.size(),
                  owned_.descriptor().address, region_.native_key(), &params);
  ucs_status_t ended = UCS_PTR_STATUS(begun);
  if (UCS_PTR_IS_PTR(begun)) {
    EXPECT_TRUE(pair_.drive_until(
        [&] { return (ended = ucp_request_check_status(begun)) != UCS_INPROGRESS; }));
    ucp_request_free(begun);
  }
  EXPECT_EQ(ended, UCS_OK);
  EXPECT_TRUE(holds_pattern(into, 4));
}

TEST_P(ConformanceD, D4_GrantsReadingOrWritingOnly) {
  const memory_region readable = pair_.allocate(4096, access::read);
  const memory_region writable = pair_.allocate(4096, access::write);
  std::vector<std::byte> bytes(8);
  std::error_code ec;
  remote_region reader = pair_.open(readable);
  reader.write_at(0, bytes, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  remote_region writer = pair_.open(writable);
  writer.read_at(0, bytes, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
}

TEST_P(ConformanceD, D5_D6_D7_D8_DamagedDescriptorsShow) {
  const std::vector<std::byte> wire = owned_.descriptor().encode();
  const remote_region opened(*pair_.connection, remote_descriptor::decode(wire));
  EXPECT_EQ(opened.size(), region_size);
  std::error_code ec;
  std::vector<std::byte> damaged = wire;
  damaged[wire.size() / 2] ^= std::byte{1};
  remote_descriptor::decode(damaged, ec);
  EXPECT_EQ(ec, errc::bad_descriptor);
  remote_descriptor::decode(std::span(wire).first(wire.size() - 1), ec);
  EXPECT_EQ(ec, errc::bad_descriptor);
}

TEST_P(ConformanceD, D9_RunningOperationsKeepWhatTheyNeed) {
  fill_pattern(owned_.bytes(), 3);
  std::vector<std::byte> into(std::size_t{4} << 20U);
  request read = region_.start_read_at(5, into);
  region_ = pair_.open(owned_);
  pair_.connection.reset();
  read.wait();
  EXPECT_TRUE(holds_pattern(into, 3, 5));
}

TEST_P(ConformanceD, D10_D12_D13_ReadsAndWritesAtOffsets) {
  for (const std::size_t size : sizes) {
    SCOPED_TRACE(size);
    const std::vector<std::byte> from = pattern(size, size);
    std::vector<std::byte> into(size);
    request write = region_.start_write_at(7, from);
    write.wait();
    region_.flush();
    EXPECT_TRUE(holds_pattern(owned_.bytes().subspan(7, size), size));
    request read = region_.start_read_at(7, into);
    read.wait();
    EXPECT_TRUE(holds_pattern(into, size));
    region_.write_at(9, from);
    region_.flush();
    region_.read_at(9, into);
    EXPECT_TRUE(holds_pattern(into, size));
  }
}

TEST_P(ConformanceD, D11_PostsWithoutRequests) {
  for (const std::size_t size : sizes) {
    SCOPED_TRACE(size);
    const std::vector<std::byte> from = pattern(size, 4);
    std::vector<std::byte> into(size);
    region_.post_write_at(0, from);
    region_.flush();
    region_.post_read_at(0, into);
    region_.flush();
    EXPECT_TRUE(holds_pattern(into, 4));
  }
  const std::vector<std::byte> small = pattern(64, 5);
  for (std::size_t i = 0; i < 5000; ++i) region_.post_write_at(i * 64, small);
  region_.flush();
  for (std::size_t i = 0; i < 5000; ++i) {
    ASSERT_TRUE(holds_pattern(owned_.bytes().subspan(i * 64, 64), 5)) << i;
  }
}

TEST_P(ConformanceD, D14_ChecksBounds) {
  std::vector<std::byte> bytes(8);
  std::error_code ec;
  region_.read_at(region_size - 7, bytes, {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
  region_.write_at(~std::uint64_t{0}, bytes, {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
  region_.post_read_at(region_size, bytes, {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
  region_.read_batch(std::array{read_piece{0, bytes}, read_piece{region_size - 1, bytes}}, {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
  remote_atomic<std::uint64_t>(region_, region_size).load({}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
}

TEST_P(ConformanceD, D15_FlushesRegionsConnectionsAndWorkers) {
  const std::vector<std::byte> from = pattern(300'000, 6);
  request writes[3];
  writes[0] = region_.start_write_at(0, from);
  request flush = region_.start_flush();
  flush.wait();
  EXPECT_TRUE(holds_pattern(owned_.bytes().first(from.size()), 6));
  writes[1] = region_.start_write_at(1'000'000, from);
  flush = pair_.connection->start_flush();
  flush.wait();
  EXPECT_TRUE(holds_pattern(owned_.bytes().subspan(1'000'000, from.size()), 6));
  writes[2] = region_.start_write_at(2'000'000, from);
  flush = pair_.reader().start_flush();
  flush.wait();
  EXPECT_TRUE(holds_pattern(owned_.bytes().subspan(2'000'000, from.size()), 6));
}

TEST_P(ConformanceD, D16_FencesOrderWhatIsOnBothSides) {
  std::vector<std::byte> first = pattern(std::size_t{2} << 20U, 7);
  std::vector<std::byte> second = pattern(std::size_t{2} << 20U, 8);
  std::vector<std::byte> into(second.size());
  for (int round = 0; round < 5; ++round) {
    region_.post_write_at(0, first);
    pair_.connection->fence();
    region_.post_write_at(0, second);
    pair_.reader().fence();
    region_.post_read_at(0, into);
    region_.flush();
    ASSERT_TRUE(holds_pattern(owned_.bytes().first(second.size()), 8));
    ASSERT_TRUE(holds_pattern(into, 8));
  }
}

TEST_P(ConformanceD, D17_AtomicsAgreeWithTheOwnersOwn) {
  auto* const number = reinterpret_cast<std::uint64_t*>(owned_.bytes().data() + 64);
  std::atomic<bool> stop{false};
  std::uint64_t own = 0;
  std::jthread owner([&] {
    const std::atomic_ref<std::uint64_t> shared(*number);
    for (; !stop || own < 1000; ++own) shared.fetch_add(1);
  });
  remote_atomic<std::uint64_t> remote(region_, 64);
  constexpr std::uint64_t rounds = 200;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    if (i % 2 == 0) {
      remote.store_add(1);
    } else {
      remote.fetch_add(1);
    }
  }
  stop = true;
  owner.join();
  EXPECT_EQ(remote.load(), own + rounds);
  std::uint64_t expected = own + rounds;
  EXPECT_TRUE(remote.compare_exchange(expected, 12));
  EXPECT_EQ(remote.exchange(10), 12U);
  EXPECT_EQ(remote.fetch_or(5), 10U);
  EXPECT_EQ(remote.fetch_and(6), 15U);
  EXPECT_EQ(remote.fetch_xor(1), 6U);
  EXPECT_EQ(remote.load(), 7U);
  remote_atomic<std::int32_t> narrow(region_, 4);
  narrow.store(-5);
  EXPECT_EQ(narrow.fetch_add(2), -5);
  std::error_code ec;
  remote_atomic<std::uint64_t>(region_, 12).load({}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
}

TEST_P(ConformanceD, D10_BatchesAreOneRequest) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{64}, std::size_t{40'000}}) {
    SCOPED_TRACE(size);
    const std::size_t count = size == 40'000 ? 20 : 1000;
    const std::vector<std::byte> from = pattern(size * count, 9);
    std::vector<std::byte> into(from.size());
    std::vector<write_piece> writes;
    std::vector<read_piece> reads;
    for (std::size_t i = 0; i < count; ++i) {
      writes.push_back({i * (size + 100), std::span(from).subspan(i * size, size)});
      reads.push_back({i * (size + 100), std::span(into).subspan(i * size, size)});
    }
    region_.start_write_batch(writes).wait();
    region_.flush();
    region_.start_read_batch(reads).wait();
    EXPECT_EQ(into, from);
  }
}

TEST_P(ConformanceD, D10_OwnersAreToldBehindTheData) {
  std::error_code ec;
  if (!messages()) {
    region_.notify(1, {}, ec);
    EXPECT_EQ(ec, errc::feature_disabled);
    EXPECT_NE(region_.start_notify(1).description().find("feature::am"), std::string::npos);
    return;
  }
  std::atomic<int> right{0};
  std::atomic<int> heard{0};
  owned_.on_notify([&](const notification& said) {
    const std::size_t size = std::size_t{1} << said.value;
    if (holds_pattern(owned_.bytes().first(size), said.value)) ++right;
    ++heard;
  });
  for (std::uint64_t power = 0; power <= 22; power += 11) {
    const std::vector<std::byte> from = pattern(std::size_t{1} << power, power);
    region_.post_write_at(0, from);
    region_.notify(power);
    EXPECT_TRUE(pair_.drive_until([&] { return heard == static_cast<int>(power / 11) + 1; }));
  }
  EXPECT_EQ(right, 3);
  owned_.on_notify({});
  region_.notify(5);
  EXPECT_EQ(owned_.take_notification().value_or(notification()).value, 5U);
}

TEST_P(ConformanceD, D19_RegionsAreSeekableFiles) {
  fill_pattern(owned_.bytes(), 4);
  iostream both(region_);
  std::vector<char> into(3000);
  const auto holds = [&](std::uint64_t offset) {
    return holds_pattern(std::as_bytes(std::span(into)), 4, offset);
  };
  both.seekg(static_cast<std::streamoff>(region_size) - 3000);
  ASSERT_TRUE(both.read(into.data(), 3000));
  EXPECT_TRUE(holds(region_size - 3000));
  EXPECT_EQ(both.peek(), std::char_traits<char>::eof());
  both.clear();
  both.seekg(-6000, std::ios_base::end);
  both.seekg(1000, std::ios_base::cur);
  EXPECT_EQ(static_cast<std::uint64_t>(both.tellg()), region_size - 5000);
  ASSERT_TRUE(both.read(into.data(), 3000));
  EXPECT_TRUE(holds(region_size - 5000));
  both.seekp(12345);
  ASSERT_TRUE(both.write("there", 5).flush());
  EXPECT_EQ(std::memcmp(owned_.bytes().data() + 12345, "there", 5), 0);
  EXPECT_TRUE(holds_pattern(owned_.bytes().subspan(12350, 1000), 4, 12350)) << "nothing else";
  both.seekp(static_cast<std::streamoff>(region_size) - 2);
  EXPECT_FALSE(both.write("abc", 3).flush()) << "it has an end";
  EXPECT_TRUE(both.bad());
}

TEST_P(ConformanceD, D20_RegionsAreStandardStreams) {
  iostream both(region_);
  both << "ein Wort " << 4711 << ' ' << std::hex << 255 << "\nzweite Zeile\n" << std::flush;
  std::istream& in = both;  // what the standard's functions take
  in.seekg(0);
  std::string word;
  int number = 0;
  in >> word >> word >> number >> std::hex >> number;
  EXPECT_EQ(word, "Wort");
  EXPECT_EQ(number, 255);
  std::string line;
  std::getline(in, line);
  ASSERT_TRUE(std::getline(in, line));
  EXPECT_EQ(line, "zweite Zeile");
  in.seekg(4);
  EXPECT_EQ(in.get(), 'W');
  EXPECT_TRUE(in.unget());
  EXPECT_EQ(in.get(), 'W');
  come_after_the_owner();
  fill_pattern(owned_.bytes(), 5);
  ucx::istream all(region_);
  std::string text;
  std::copy_n(std::istreambuf_iterator<char>(all), 300'000, std::back_inserter(text));
  EXPECT_TRUE(holds_pattern(std::as_bytes(std::span(text)), 5));
}

INSTANTIATE_TEST_SUITE_P(Pairs, ConformanceD, testing::ValuesIn(every_pair()), name_of_pair);
INSTANTIATE_TEST_SUITE_P(Adopted, ConformanceD, testing::ValuesIn(adopted_pairs()), name_of_pair);

// Shared memory with messages beside it: what one of them can not do the other does.
TEST(ConformanceDMixed, D10_D17_SharedMemoryWithMessages) {
  context_options chosen = context_options_for(route::shared_memory);
  chosen.features = feature::rma | feature::am | feature::wakeup;
  const context owner_context(chosen);
  const worker owner(owner_context, {.progress = progress_mode::sleeping_thread});
  memory_region owned = memory_region::allocate(owner_context, 1 << 20, access::read_write);
  const context context(chosen);
  worker reader(context);
  endpoint connection(reader, owner.address());
  connection.wait_connected();
  remote_region region(connection, owned.descriptor());
  ASSERT_EQ(region.transfer_method(), transfer_method::rma);
  const std::vector<std::byte> from = pattern(500'000, 3);
  region.post_write_at(0, from);
  std::atomic<bool> right{false};
  owned.on_notify(
      [&](const notification&) { right = holds_pattern(owned.bytes().first(from.size()), 3); });
  region.notify(1);
  for (int i = 0; i < 4000 && !right; ++i) std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(right);
  remote_atomic<std::uint32_t> number(region, 600'000);
  number.store(3);
  EXPECT_EQ(number.fetch_add(4), 3U);
  EXPECT_EQ(number.load(), 7U);
}

/// The owner is of mode `caller`: it serves its peers while it waits for what they say.
class ConformanceDWaiting : public testing::TestWithParam<route> {
 protected:
  static context_options options() {
    context_options made = context_options_for(GetParam());
    made.features = feature::rma | feature::am | feature::wakeup;
    return made;
  }

  context owner_context_{options()};
  context reader_context_{options()};
  worker owner_{owner_context_};
  memory_region owned_ = memory_region::allocate(owner_context_, region_size, access::read_write);
};

TEST_P(ConformanceDWaiting, D10_OwnersWaitForWhatTheyAreTold) {
  constexpr std::size_t size = std::size_t{2} << 20U;
  std::optional<listener> door;
  if (GetParam() == route::tcp_by_listener) door.emplace(owner_, any_port_of_network());
  const worker_address address = owner_.address();
  std::atomic<bool> over{false};
  std::jthread reading([&] {
    worker reader(reader_context_);
    std::optional<endpoint> connection;
    if (door) {
      connection.emplace(reader, door->address());
    } else {
      connection.emplace(reader, address);
    }
    remote_region region(*connection, owned_.descriptor());
    for (std::uint64_t round = 1; round <= 3; ++round) {
      const std::vector<std::byte> from = pattern(size, round);
      region.write_at(0, from);
      std::vector<std::byte> back(size);
      region.read_at(0, back);
      EXPECT_TRUE(holds_pattern(back, round));
      region.notify(round);
    }
    connection->close();
    over = true;
  });
  EXPECT_EQ(owned_.wait_notify(owner_, {.timeout = 60s}).value, 1U);
  notification second;
  request waiting = owned_.start_wait_notify(owner_, second, {.timeout = 60s});
  waiting.wait();
  EXPECT_EQ(second.value, 2U);
  EXPECT_EQ(owned_.wait_notify(owner_, {.timeout = 60s}).value, 3U);
  EXPECT_TRUE(holds_pattern(owned_.bytes().first(size), 3));
  while (!over) owner_.progress();  // the peer closes
  std::error_code ec;
  owned_.wait_notify(owner_, {.timeout = 10ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
}

INSTANTIATE_TEST_SUITE_P(Routes, ConformanceDWaiting,
                         testing::Values(route::tcp_by_address, route::tcp_by_listener,
                                         route::shared_memory),
                         [](const auto& chosen) { return to_string(chosen.param); });

// One transfer of 3 GiB. One side of it is sparse, so that it takes so much memory once.
class ConformanceDLarge : public testing::Test {
 protected:
  static constexpr std::size_t size = std::size_t{3} << 30U;
  static constexpr std::size_t places[] = {0, (std::size_t{1} << 31U) - 2000, size - 4000};

  void SetUp() override {
#if defined(UCXIO_WITH_TSAN)
    GTEST_SKIP() << "ThreadSanitizer would need 12 GiB for it";
#endif
    if (free_memory() < 2 * size) GTEST_SKIP() << "less than 6 GiB of memory are free";
    ASSERT_TRUE(owned_.usable() && mine_.usable());
  }
  static void fill(std::span<std::byte> bytes) {
    for (const std::size_t place : places) fill_pattern(bytes.subspan(place, 4000), place);
  }
  static bool is_filled(std::span<const std::byte> bytes) {
    std::size_t end = 0;  // of the last place
    for (const std::size_t place : places) {
      if (!holds_pattern(bytes.subspan(place, 4000), place)) return false;
      if (!all_bytes_are(bytes.subspan(end, place - end), std::byte{0})) return false;
      end = place + 4000;
    }
    return true;
  }

  sparse_memory owned_{size};
  sparse_memory mine_{size};
  connected_pair pair_;
  memory_region exposed_{*pair_.owner_context, owned_.bytes(), access::read_write};
  remote_region region_ = pair_.open(exposed_);
};

TEST_F(ConformanceDLarge, D10_ReadsThreeGibibytesAtOnce) {
  fill(owned_.bytes());
  region_.read_at(0, mine_.bytes(), {.timeout = 100s});
  EXPECT_TRUE(is_filled(mine_.bytes()));
}

TEST_F(ConformanceDLarge, D10_WritesThreeGibibytesAtOnce) {
  fill(mine_.bytes());
  region_.write_at(0, mine_.bytes(), {.timeout = 100s});
  region_.flush({.timeout = 100s});
  EXPECT_TRUE(is_filled(owned_.bytes()));
}

// Buffers: spans say contiguous, sized and writable, or the program does not compile.
template <class Bytes>
concept readable_into = requires(remote_region& region, Bytes bytes) {
  region.read_at(0, bytes);
};
template <class Bytes>
concept writable_from = requires(remote_region& region, Bytes bytes) {
  region.write_at(0, bytes);
};

TEST(ConformanceF, F4_ReadOnlyAndScatteredMemoryDoNotCompile) {
  EXPECT_TRUE((readable_into<std::span<std::byte>>));
  EXPECT_TRUE((readable_into<std::vector<std::byte>&>));
  EXPECT_FALSE((readable_into<std::span<const std::byte>>));
  EXPECT_FALSE((readable_into<const std::vector<std::byte>&>));
  EXPECT_FALSE((readable_into<std::string&>));
  EXPECT_TRUE((writable_from<std::span<const std::byte>>));
  EXPECT_TRUE((writable_from<const std::vector<std::byte>&>));
  EXPECT_FALSE((writable_from<std::byte*>));
  // Memory that is exposed can not be a container that dies at once.
  EXPECT_FALSE((std::is_constructible_v<memory_region, const context&, std::vector<std::byte>>));
}

TEST(ConformanceF, F6_PatternsAreFilledAndVerified) {
  connected_pair pair;
  memory_region owned = pair.allocate(100'000);
  ucx::fill_pattern(owned.bytes(), 3);
  remote_region region = pair.open(owned);
  std::vector<std::byte> into(1000);
  region.read_at(70'000, into);
  EXPECT_EQ(ucx::find_pattern_mismatch(into, 3, 70'000), std::nullopt);
  EXPECT_NE(ucx::find_pattern_mismatch(into, 3), std::nullopt) << "of another place";
  EXPECT_NE(ucx::find_pattern_mismatch(into, 4, 70'000), std::nullopt) << "of another content";
  into[999] ^= std::byte{1};
  EXPECT_EQ(ucx::find_pattern_mismatch(into, 3, 70'000), 999U);
  region.write_at(70'000, into);
  region.flush();
  pair.owner->attributes();  // behind the owner's round, for ThreadSanitizer
  EXPECT_EQ(ucx::find_pattern_mismatch(owned.bytes(), 3), 70'999U);
}

TEST(ConformanceF, F11_EveryErrorHasItsOwnWordsAndOneCategory) {
  std::vector<std::string> seen;
  for (int value = 1; value <= static_cast<int>(errc::not_secure); ++value) {
    const std::error_code ec = static_cast<errc>(value);
    EXPECT_STREQ(ec.category().name(), "ucxio");
    for (const std::string& other : seen) EXPECT_NE(other, ec.message());
    seen.push_back(ec.message());
  }
  try {
    throw error(errc::busy, "this");
  } catch (const std::system_error& caught) {
    EXPECT_EQ(caught.code(), errc::busy);
  }
}

TEST(ConformanceF, F12_CallsOfRegionsDoNotThrowWhereTheyAreAsked) {
  // One that was never opened: every form with an error code tells it so.
  connected_pair pair;
  remote_region region = pair.open(pair.allocate(4096));
  const remote_region moved = std::move(region);
  std::vector<std::byte> bytes(8);
  const std::array reads{read_piece{0, bytes}};
  const std::array writes{write_piece{0, bytes}};
  remote_atomic<std::uint64_t> number(region, 0);
  std::uint64_t expected = 0;
  const auto closed = [](auto call) {
    std::error_code ec;
    EXPECT_NO_THROW(call(ec));
    return ec == errc::closed;
  };
  EXPECT_TRUE(closed([&](auto& ec) { region.read_at(0, bytes, {}, ec); }));
  EXPECT_TRUE(closed([&](auto& ec) { region.write_at(0, bytes, {}, ec); }));
  EXPECT_TRUE(closed([&](auto& ec) { region.post_read_at(0, bytes, {}, ec); }));
  EXPECT_TRUE(closed([&](auto& ec) { region.post_write_at(0, bytes, {}, ec); }));
  EXPECT_TRUE(closed([&](auto& ec) { region.read_batch(reads, {}, ec); }));
  EXPECT_TRUE(closed([&](auto& ec) { region.write_batch(writes, {}, ec); }));
  EXPECT_TRUE(closed([&](auto& ec) { region.flush({}, ec); }));
  EXPECT_TRUE(closed([&](auto& ec) { region.notify(1, {}, ec); }));
  EXPECT_TRUE(closed([&](auto& ec) { number.load({}, ec); }));
  EXPECT_TRUE(closed([&](auto& ec) { number.store(1, {}, ec); }));
  EXPECT_TRUE(closed([&](auto& ec) { number.fetch_add(1, {}, ec); }));
  EXPECT_TRUE(closed([&](auto& ec) { number.compare_exchange(expected, 1, {}, ec); }));
}

}  // namespace
}  // namespace ucx::test
