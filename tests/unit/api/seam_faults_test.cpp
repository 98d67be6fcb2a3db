// One script of everything the core does, played with each call of the seam failing in turn.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/fake_ucp/fake_network.hpp"
#include "support/simulated/forgotten_by_ucx.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/worker.hpp"
#include "worker/core_access.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// What the script runs over.
enum class link_kind {
  tcp_by_address,   ///< Everything by messages.
  tcp_by_listener,  ///< The same, connected by sockets.
  rdma,             ///< Everything by RMA that is real.
  same_host,        ///< RMA without UCX's error handling.
};

link_options options_of(link_kind kind) {
  link_options options;
  if (kind == link_kind::rdma) {
    options.emulated_rma = false;
    options.resources = {"self/memory0", "rc_mlx5/mlx5_0:1"};
  } else if (kind == link_kind::same_host) {
    options.emulated_rma = false;
    options.shared_memory = true;
    options.resources = {"self/memory0", "posix/memory", "cma/memory"};
  }
  return options;
}

constexpr std::size_t region_size = 40000;
constexpr std::size_t written_from = 20000;

/// Plays the script once, and checks whatever has to hold although anything may fail.
class player {
 public:
  player(fake_network& network, link_kind kind) : network_(network), kind_(kind) {}

  void play() {
    fake_process& owner = network_.add_process("owner");
    fake_process& reader = network_.add_process("reader");
    own_and_read(owner, reader);
    owner.on_pump({});
    reader.on_pump({});
    for (const operation& each : operations_) {
      EXPECT_EQ(each.ends, 1) << each.name;
    }
  }

  bool finished() const noexcept { return finished_; }

 private:
  struct operation {
    std::string name;
    int ends = 0;
    std::error_code outcome;
    std::vector<std::byte> bytes;
    request started;
  };

  std::optional<context> make_context(fake_process& process) {
    context_options options;
    options.name = process.name();
    if (kind_ == link_kind::same_host) options.transports = {"posix", "cma", "self"};
    options.configuration["TX_SEG_SIZE"] = options.configuration["RX_SEG_SIZE"] = "12K";
    std::error_code ec;
    context made = detail::core_access::make_context(process.api(), options, ec);
    if (ec) return std::nullopt;
    return made;
  }

  static std::optional<worker> make_worker(const context& parent) {
    worker_options options;
    options.connect_timeout = 200ms;
    options.operation_timeout = 400ms;
    options.close_timeout = 200ms;
    options.heartbeat_interval = 50ms;
    options.heartbeat_timeout = 300ms;
    std::error_code ec;
    worker made(parent, options, ec);
    if (ec) return std::nullopt;
    return made;
  }

  void own_and_read(fake_process& owner_process, fake_process& reader_process) {
    const auto owner_context = make_context(owner_process);
    const auto reader_context = make_context(reader_process);
    if (!owner_context || !reader_context) return;
    auto owner = make_worker(*owner_context);
    auto reader = make_worker(*reader_context);
    if (!owner || !reader) return;
    owner_process.on_pump([&] { owner->progress(); });
    reader_process.on_pump([&] { reader->progress(); });

    std::error_code ec;
    fill_pattern(memory_);
    memory_region exposed =
        kind_ == link_kind::same_host
            ? memory_region::allocate(*owner_context, region_size, access::read_write, {}, ec)
            : memory_region(*owner_context, std::span<std::byte>(memory_), access::read_write, {},
                            ec);
    if (!ec) {
      fill_pattern(exposed.bytes());
      connect_and_read(*owner, *reader, exposed);
    }
    owner_process.on_pump({});
    reader_process.on_pump({});
  }

  void connect_and_read(worker& owner, worker& reader, memory_region& exposed) {
    std::error_code ec;
    std::optional<listener> listening;
    if (kind_ == link_kind::tcp_by_listener) {
      listening.emplace(owner, socket_address("127.0.0.1:0"), listener_options(), ec);
      if (ec) return;
      std::optional<endpoint> connection(std::in_place, reader, listening->address(),
                                         endpoint_options(), ec);
      if (!ec) use(*connection, exposed);
      return;
    }
    const worker_address address = owner.address(ec);
    if (ec) return;
    endpoint connection(reader, address, {}, ec);
    if (!ec) use(connection, exposed);
  }

  void use(endpoint& connection, memory_region& exposed) {
    std::error_code ec;
    {
      remote_region region(connection, exposed.descriptor(), {}, ec);
      if (ec) return;
      const bool by_rma = kind_ == link_kind::rdma || kind_ == link_kind::same_host;
      const bool has_key = !exposed.descriptor().remote_key.empty();
      EXPECT_TRUE(!by_rma || !has_key || region.transfer_method() == transfer_method::rma ||
                  network_.count(call::ep_rkey_unpack) > 0);
      start_operations(connection, region);
      end_operations();
      region.flush({}, ec);
      if (!ec) expect_written(exposed.bytes());
      read_on(region);
      ec.clear();
      exposed.close();
    }
    connection.close(close_mode::flush, ec);
    finished_ = true;
  }

  operation& track(const char* name, std::size_t size) {
    operation& made = operations_.emplace_back();
    made.name = name;
    made.bytes.resize(size);
    return made;
  }

  void start(operation& started, request&& made) {
    started.started = std::move(made);
    started.started.then([&started](std::error_code ec) {
      ++started.ends;
      started.outcome = ec;
    });
  }

  void start_operations(endpoint& connection, remote_region& region) {
    for (const std::size_t size : {std::size_t{8}, std::size_t{9000}, std::size_t{20000}}) {
      operation& read = track("read", size);
      start(read, region.start_read_at(0, read.bytes));
    }
    for (const auto& [offset, size] : {std::pair<std::size_t, std::size_t>{0, 100}, {100, 19900}}) {
      operation& write = track("write", size);
      fill_pattern(write.bytes, 7, offset);
      start(write, region.start_write_at(written_from + offset, write.bytes));
    }
    operation& flush = track("flush", 0);
    start(flush, connection.start_flush());
  }

  void end_operations() {
    for (operation& each : operations_) {
      std::error_code ec;
      each.started.wait(ec);
      EXPECT_TRUE(each.started.done());
      if (each.name == "read" && !ec) {
        EXPECT_TRUE(holds_pattern(each.bytes)) << each.name << " succeeded with other bytes";
      }
    }
    // Handlers come from the round of progress after the one that ended the wait.
    network_.advance(1ms);
  }

  void expect_written(std::span<const std::byte> memory) {
    const bool all_went =
        std::none_of(operations_.begin(), operations_.end(),
                     [](const auto& each) { return each.name == "write" && each.outcome; });
    if (all_went) {
      EXPECT_TRUE(holds_pattern(memory.subspan(written_from), 7));
    }
    EXPECT_TRUE(holds_pattern(memory.first(written_from)));
  }

  void read_on(remote_region& region) {
    std::vector<std::byte> into(5000);
    std::error_code ec;
    region.read_at(3000, into, {}, ec);
    if (!ec) {
      EXPECT_TRUE(holds_pattern(into, 0, 3000));
    }
  }

  fake_network& network_;
  const link_kind kind_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(region_size);
  std::list<operation> operations_;
  bool finished_ = false;
};

/// Plays it on `network`, and checks that it was bounded and left nothing behind.
void play_on(fake_network& network, link_kind kind, bool may_leak = false) {
  const auto begin = network.now();
  {
    player played(network, kind);
    played.play();
  }
  EXPECT_LT(network.now() - begin, 20s);
  EXPECT_LT(network.count(call::worker_progress), 400000U);
  if (may_leak) {
    for (const std::string& each : network.violations()) {
      // What could not be closed is still there when its worker goes.
      const bool excused = each.find("is not closed") != std::string::npos ||
                           each.find("pending in mode PEER") != std::string::npos ||
                           each.find("memory of the context is mapped") != std::string::npos ||
                           each.find("listener of the worker lives") != std::string::npos;
      EXPECT_TRUE(excused) << each;
    }
    return;
  }
  network.expect_clean();
}

/// Failing to end something leaves it in UCX's hands.
bool leaks(call which) {
  return which == call::ep_close || which == call::mem_unmap || which == call::listener_reject;
}

std::vector<call> calls_that_can_fail() {
  std::vector<call> found;
  for (std::size_t i = 0; i < call_count; ++i) {
    if (can_fail(static_cast<call>(i))) found.push_back(static_cast<call>(i));
  }
  return found;
}

constexpr link_kind kinds[] = {link_kind::tcp_by_address, link_kind::tcp_by_listener,
                               link_kind::rdma, link_kind::same_host};

TEST(SeamFaults, ScriptSucceedsWithoutAny) {
  for (const link_kind kind : kinds) {
    fake_network network(options_of(kind));
    {
      player played(network, kind);
      played.play();
      EXPECT_TRUE(played.finished());
    }
    network.expect_clean();
    EXPECT_EQ(network.count(call::get) > 0,
              kind == link_kind::rdma || kind == link_kind::same_host);
    EXPECT_EQ(network.count(call::listener_create) > 0, kind == link_kind::tcp_by_listener);
  }
}

class SeamCall : public testing::TestWithParam<call> {};

TEST_P(SeamCall, MayFailAtAnyTime) {
  for (const link_kind kind : kinds) {
    for (unsigned nth = 1;; ++nth) {
      const ucs_status_t status = nth % 2 == 0 ? UCS_ERR_NO_MEMORY : UCS_ERR_IO_ERROR;
      fake_network network(options_of(kind), nth);
      network.faults().fail(GetParam(), status, nth);
      play_on(network, kind, leaks(GetParam()));
      if (network.count(GetParam()) < nth) break;
      ASSERT_FALSE(HasFailure()) << to_string(GetParam()) << ", call " << nth << ", link "
                                 << static_cast<int>(kind);
    }
  }
}

TEST_P(SeamCall, MayFailEveryTime) {
  for (const link_kind kind : kinds) {
    for (const ucs_status_t status : {UCS_ERR_NO_RESOURCE, UCS_ERR_UNSUPPORTED}) {
      fake_network network(options_of(kind));
      network.faults().fail(GetParam(), status, 0);
      play_on(network, kind, leaks(GetParam()));
      ASSERT_FALSE(HasFailure()) << to_string(GetParam()) << ", link " << static_cast<int>(kind);
    }
  }
}

TEST_P(SeamCall, MayFailLate) {
  for (const link_kind kind : kinds) {
    for (unsigned nth = 1;; ++nth) {
      const ucs_status_t status = nth % 2 == 0 ? UCS_ERR_ENDPOINT_TIMEOUT : UCS_ERR_CANCELED;
      fake_network network(options_of(kind), nth);
      network.faults().fail_late(GetParam(), status, nth);
      play_on(network, kind);
      if (network.count(GetParam()) < nth) break;
      ASSERT_FALSE(HasFailure()) << to_string(GetParam()) << ", call " << nth << ", link "
                                 << static_cast<int>(kind);
    }
  }
}

TEST_P(SeamCall, MayEndLate) {
  std::optional<forgotten_by_ucx> never_ended;  // a flush later than its connection's end
  if (GetParam() == call::ep_flush) never_ended.emplace();
  for (const link_kind kind : kinds) {
    for (unsigned nth = 1;; ++nth) {
      fake_network network(options_of(kind), nth);
      network.faults().delay(GetParam(), nth % 2 == 0 ? 30ms : 3s, nth);
      play_on(network, kind);
      if (network.count(GetParam()) < nth) break;
      ASSERT_FALSE(HasFailure()) << to_string(GetParam()) << ", call " << nth << ", link "
                                 << static_cast<int>(kind);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, SeamCall, testing::ValuesIn(calls_that_can_fail()),
                         [](const auto& which) { return std::string(to_string(which.param)); });

class SeamChaos : public testing::TestWithParam<std::uint64_t> {};

TEST_P(SeamChaos, EndsWhateverFailsIsLateOrOvertakes) {
  for (std::uint64_t seed = GetParam(); seed < GetParam() + 25; ++seed) {
    const link_kind kind = kinds[seed % std::size(kinds)];
    link_options options = options_of(kind);
    options.error_handler_first = seed % 3 == 0;
    options.close_calls_back = seed % 5 == 0;
    options.destroy_calls_back = seed % 7 == 0;
    fake_network network(options, seed);
    chaos probabilities;
    probabilities.fail = seed % 2 == 0 ? 0.02 : 0;
    probabilities.fail_late = seed % 4 == 1 ? 0.02 : 0;
    probabilities.delay = 0.2;
    network.faults().randomize(probabilities);
    network.faults().reorder(0.3);
    network.faults().inline_completion(0.1 * static_cast<double>(seed % 11));
    play_on(network, kind);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SeamChaos,
                         testing::Values(0U, 25U, 50U, 75U, 100U, 125U, 150U, 175U));

}  // namespace
}  // namespace ucx::test
