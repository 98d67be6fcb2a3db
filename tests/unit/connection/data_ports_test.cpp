// Who looks after the ports by which data come, and what is said where nobody does.
#include "connection/data_ports.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/owned_descriptor.hpp"
#include "connection/listener_core.hpp"
#include "os/tcp_socket.hpp"
#include "support/fake_ucp/fake_network.hpp"
#include "support/replaced/shortage.hpp"
#include "ucx/context.hpp"
#include "ucx/listener.hpp"
#include "ucx/worker.hpp"
#include "worker/core_access.hpp"

namespace ucx::detail {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DataPorts : public testing::Test {
 protected:
  DataPorts() {
    options_.log.level = log_level::warning;
    options_.log.sink = [this](log_level, std::string_view line) { lines_.emplace_back(line); };
  }

  /// Has a listener of such a context give those who come to another worker, too.
  void listen(const context& own, const socket_address& at) {
    worker first(own);
    worker second(own);
    const listener door(first, at);
    core_access::core(door)->spread_over({core_access::core(second)});
  }

  std::vector<std::string> lines_;
  context_options options_;
};

TEST_F(DataPorts, AreLookedAfterWithThisUcx) {
  options_.configuration = {{"TLS", "tcp,self"}};
  listen(context(options_), socket_address("127.0.0.1:0"));
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(DataPorts, OfFurtherWorkersAreToldOfWhereThereIsNoMemory) {
  options_.configuration = {{"TLS", "tcp,self"}};
  const context own(options_);
  worker first(own);
  worker second(own);
  const listener door(first, socket_address("127.0.0.1:0"));
  bool failed = true;
  for (std::uint64_t point = 0; failed && lines_.empty(); ++point) {
    failed = false;
    test::current_shortage = {.left = point};
    try {
      const test::callback_scope ours(true);
      core_access::core(door)->spread_over({core_access::core(second)});
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    failed = test::was_short() || failed;
  }
  EXPECT_THAT(lines_, ElementsAre(AllOf(HasSubstr("further workers"), HasSubstr("memory"))));
}

/// A listener of a simulated UCX, whose workers' addresses are none of UCX's.
class DataPortsOfAStrangeUcx : public DataPorts {
 protected:
  context make() {
    std::error_code ec;
    return core_access::make_context(network_.add_process("one").api(), options_, ec);
  }

  test::fake_network network_;
};

TEST_F(DataPortsOfAStrangeUcx, AreToldOfForEachWorker) {
  // The simulation has no socket: here it is.
  const owned_descriptor door(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const socket_address any("127.0.0.1:0");
  ASSERT_EQ(::bind(door.get(), any.native(), any.native_size()), 0);
  ASSERT_EQ(::listen(door.get(), 1), 0);
  const socket_address at = tcp_socket::local(door.get());
  listen(make(), at);
  const auto told =
      AllOf(HasSubstr("nobody looks after the ports by which data come to " + to_string(at)),
            HasSubstr("UCX 1.13.1 tells them in another way than 1.13 to 1.22 do"));
  EXPECT_THAT(lines_, ElementsAre(told, told));
}

TEST_F(DataPortsOfAStrangeUcx, AreNotToldOfWhereThereAreNone) {
  network_.link().resources = {"self/memory0", "rc_verbs/rxe0:1"};
  listen(make(), socket_address("127.0.0.1:7471"));
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(DataPortsOfAStrangeUcx, AreLeftAloneWithAPortThatIsNotFound) {
  listen(make(), socket_address("127.0.0.1:7471"));
  EXPECT_THAT(lines_, ElementsAre(AllOf(HasSubstr("nobody looks after the port 127.0.0.1:7471"),
                                        HasSubstr("not to be found"))));
}

}  // namespace
}  // namespace ucx::detail
