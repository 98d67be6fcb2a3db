// A process that is killed or stopped in the middle of a transfer, where one side has UCX alone.
// UCXIO_DEATHS is how often each (4).
#include <gtest/gtest.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "plain_owner.hpp"
#include "support/basics/effort.hpp"
#include "support/basics/processor_time.hpp"
#include "support/bytes/hex.hpp"
#include "support/process/child_process.hpp"
#include "support/process/process_memory.hpp"
#include "support/process/test_peer.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// A transfer takes some milliseconds over any route.
constexpr std::size_t death_size = std::size_t{8} << 20U;
constexpr std::chrono::milliseconds death_deadline{500};
/// Far from any deadline, also where the machine is slow.
constexpr std::chrono::seconds long_enough{30};
/// An error comes so soon behind a deadline, or a death, in the time of the thread that waits.
constexpr std::chrono::seconds most_late{1};
/// The same by the clock, where the machine is slow or stalls.
constexpr std::chrono::seconds most_late_by_clock{10};
/// The deadline of a user that is stopped, and when that is over for sure.
constexpr const char* user_deadline = "1";
constexpr std::chrono::milliseconds behind_user_deadline{1500};
/// Of each death: less than one side's bytes of the transfer that it ended.
constexpr std::size_t bytes_that_may_stay = death_size / 2;

int deaths() {
  const char* const told = std::getenv("UCXIO_DEATHS");
  return told != nullptr ? std::max(std::atoi(told), 1) : effort(4, 2);
}

/// What a process has. UCX 1.22 keeps 2 MiB of shared memory for each peer that has read, of
/// processes that have UCX alone, too: that does not count.
struct footprint {
  std::size_t files;
  std::size_t memory;
};

footprint footprint_of(pid_t process) {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(process) + "/fd");
  return {static_cast<std::size_t>(std::distance(begin(all), end(all))), private_memory(process)};
}

/// How two processes reach each other, and whose memory it is.
struct plain_route {
  const char* name;
  const char* transports;
  bool by_listener;
  const char* memory;  // of a plain owner
};

void PrintTo(const plain_route& route, std::ostream* out) { *out << route.name; }

constexpr plain_route plain_routes[] = {
    {"TcpByAddress", "tcp", false, "own"},
    {"TcpByListener", "tcp", true, "own"},
    {"Mapped", "posix,self", false, "allocated"},
    {"Cma", "posix,cma,self", false, "own"},
};

bool goes_over_tcp(const plain_route& route) { return std::string(route.transports) == "tcp"; }

std::string why_not_here(const plain_route& route) {
  unsigned found[3] = {};
  ucp_get_version(&found[0], &found[1], &found[2]);
  if (std::string(route.name) == "Cma" && std::pair(found[0], found[1]) < std::pair(1U, 22U)) {
    return "this UCX does not read memory by CMA";
  }
  return {};
}

struct plain_death {
  plain_route route;
  bool writes;
  bool stops;
};

using death_parameters = std::tuple<plain_route, bool, bool>;

std::string name_of_death(const testing::TestParamInfo<death_parameters>& instance) {
  const auto& [route, writes, stops] = instance.param;
  return std::string(route.name) + (writes ? "Write" : "Read") + (stops ? "Stopped" : "Killed");
}

class PlainDeath : public testing::TestWithParam<death_parameters> {
 protected:
  void SetUp() override {
    const std::string why = why_not_here(here_.route);
    if (!why.empty()) GTEST_SKIP() << why;
  }

  /// Loses one in the middle, at moments that spread over a transfer. The first two times do not
  /// count for what stays of them.
  static void lose_many(const std::function<void(double)>& lose,
                        const std::function<footprint()>& look) {
    lose(0.3);
    lose(0.7);
    if (HasFatalFailure()) return;
    const footprint before = look();
    for (int round = 0; round < deaths(); ++round) {
      SCOPED_TRACE(round);
      lose((round + 0.5) / deaths());
      if (HasFatalFailure()) return;
    }
    const std::size_t most_memory =
        before.memory + static_cast<std::size_t>(deaths()) * bytes_that_may_stay;
    const auto is_well = [&](const footprint& now) {
      return now.files <= before.files && (!memory_is_measurable || now.memory < most_memory);
    };
    // A round of progress may be missing yet.
    footprint after = look();
    for (const auto until = clock::now() + 20s; !is_well(after) && clock::now() < until;
         after = look()) {
      std::this_thread::sleep_for(20ms);
    }
    EXPECT_LE(after.files, before.files);
    if (memory_is_measurable) {
      EXPECT_LT(after.memory, most_memory) << "of " << before.memory << " bytes before";
    }
  }
  /// Does to `victim` what this test is about.
  void end(child_process& victim) const {
    if (here_.stops) {
      victim.stop();
    } else {
      victim.kill();
    }
  }

  const plain_death here_{std::get<0>(GetParam()), std::get<1>(GetParam()),
                          std::get<2>(GetParam())};
};

/// The owner has UCX alone, and dies.
class PlainOwnerDeath : public PlainDeath {
 protected:
  std::error_code move_all(remote_region& region, std::vector<std::byte>& bytes,
                           std::chrono::nanoseconds within) {
    const io_options in_time{.timeout = within};
    if (!here_.writes) return end_of(region.start_read_at(0, bytes, in_time), within);
    const std::error_code ec = end_of(region.start_write_at(0, bytes, in_time), within);
    return ec ? ec : end_of(region.start_flush(in_time), within);
  }

  /// Drives it to its end, which is due `within` this time.
  std::error_code end_of(request started, std::chrono::nanoseconds within) {
    const auto deadline = clock::now() + within;
    work_behind late(deadline);
    while (!started.done() && late.look() <= most_late &&
           clock::now() < deadline + most_late_by_clock) {
      reader_->driven.progress();
    }
    EXPECT_TRUE(started.done()) << "it goes on behind its deadline";
    return started.error();
  }

  void lose(plain_reader& reader, double moment) {
    const plain_route& route = here_.route;
    reader_ = &reader;
    plain_owner owner(route.transports, route.by_listener ? "127.0.0.1" : "address", route.memory,
                      death_size);
    endpoint connection = route.by_listener
                              ? endpoint(reader.driven, owner.listens(), {.plain_peer = true})
                              : reader.connect(owner.address());
    remote_region region(connection, owner.descriptor(), {.trusted_peer = true});
    std::vector<std::byte> bytes(death_size, std::byte{'w'});
    ASSERT_FALSE(move_all(region, bytes, long_enough));
    const auto first = clock::now();
    ASSERT_FALSE(move_all(region, bytes, long_enough));
    const auto whole = clock::now() - first;
    const bool is_timed = here_.stops && goes_over_tcp(route);
    const auto within = is_timed ? death_deadline : std::chrono::milliseconds(long_enough);
    const processor_time spent;
    clock::time_point gone;  // before `is_gone`, as the next
    std::chrono::nanoseconds spent_before{};
    std::atomic<bool> is_gone{false};
    std::jthread leaver([&, began = clock::now()] {
      std::this_thread::sleep_until(began +
                                    std::chrono::duration_cast<clock::duration>(whole * moment));
      spent_before = spent.now();
      end(owner.process());
      gone = clock::now();
      is_gone = true;
    });
    // What UCX has mapped or the system copies goes on.
    const auto until = clock::now() + 20s;
    std::error_code ec;
    for (bool last = false; !ec && !last && clock::now() < until;) {
      last = !goes_over_tcp(route) && is_gone;
      ec = move_all(region, bytes, within);
    }
    const auto ended = clock::now();
    const auto spent_by_then = spent.now();
    leaver.join();
    owner.process().resume();
    if (!here_.stops) {
      longest_ = std::max(longest_, ended - gone);
      EXPECT_LE(spent_by_then - spent_before, most_late);
      EXPECT_LE(ended - gone, most_late_by_clock);
    }
    expect_documented(ec);
    if (!goes_over_tcp(route)) return;
    // UCX tells of a death behind the transfer that it ended.
    while (!here_.stops && connection.state() == connection_state::active && clock::now() < until) {
      reader.driven.progress();
    }
    if (!here_.stops) {
      EXPECT_EQ(connection.state(), connection_state::failed);
      return;
    }
    // What was given up is left to UCX: the connection goes on when the owner does.
    EXPECT_EQ(connection.state(), connection_state::active);
    std::error_code told_once;
    if (here_.writes) region.flush({.timeout = long_enough}, told_once);
    const std::error_code again = move_all(region, bytes, long_enough);
    EXPECT_FALSE(again) << again.message();
    if (here_.writes) {
      EXPECT_EQ(owner.ask("sum"), std::to_string(std::uint64_t{'w'} * death_size));
    }
  }

  void expect_documented(std::error_code ec) const {
    if (goes_over_tcp(here_.route)) {
      const errc wanted = here_.stops ? errc::timed_out : errc::connection_reset;
      EXPECT_EQ(ec, wanted) << ec.message();
    } else if (here_.stops) {
      EXPECT_FALSE(ec) << ec.message();
    } else if (std::string(here_.route.name) == "Cma") {
      EXPECT_EQ(ec, errc::io_error) << ec.message();
    } else {
      EXPECT_TRUE(!ec || ec == errc::connection_reset) << ec.message();
    }
  }

  plain_reader* reader_ = nullptr;
  clock::duration longest_ = -1h;
};

TEST_P(PlainOwnerDeath, EndsTransfersInTime) {
  plain_reader reader(parts_of(here_.route.transports));
  const auto look = [&] {
    // UCX closes what was dropped in its rounds.
    for (int i = 0; i < 1000 && reader.driven.progress(); ++i) continue;
    return footprint_of(::getpid());
  };
  lose_many([&](double moment) { lose(reader, moment); }, look);
  RecordProperty(
      "longest_after_death_ms",
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(longest_).count()));
}

INSTANTIATE_TEST_SUITE_P(Over, PlainOwnerDeath,
                         testing::Combine(testing::ValuesIn(plain_routes), testing::Bool(),
                                          testing::Bool()),
                         name_of_death);

/// What moves an owner's memory without end, in another process.
class plain_user {
 public:
  plain_user(const std::string& program, const std::vector<std::string>& arguments)
      : process_(sibling_program(program), arguments) {}

  /// Returns how long a transfer takes, when it is in the middle of them; nothing if it failed.
  std::optional<std::chrono::microseconds> moving() {
    const std::string said = process_.read_line(120s).value_or("nothing");
    if (!said.starts_with("moving ")) {
      ADD_FAILURE() << "the user said: " << said;
      return {};
    }
    return std::chrono::microseconds(std::stoi(said.substr(7)));
  }
  /// Has it end, and returns what it says of that.
  std::string end() {
    try {
      process_.write_line("enough");
    } catch (const std::system_error&) {  // it has ended, and said so
    }
    return said();
  }
  std::string said() { return process_.read_line(120s).value_or("nothing"); }
  child_process& process() noexcept { return process_; }

 private:
  child_process process_;
};

/// The side that reads or writes dies; its owner goes on, and serves another one.
class PlainUserDeath : public PlainDeath {
 protected:
  /// With the seconds that each of its transfers may take.
  using start_user = std::function<plain_user(const char* seconds)>;

  void lose(const start_user& start, const std::function<void()>& look_at_owner, double moment) {
    plain_user victim = start(user_deadline);
    const auto whole = victim.moving();
    ASSERT_TRUE(whole);
    std::this_thread::sleep_for(*whole * moment);
    end(victim.process());
    const auto over = clock::now() + behind_user_deadline;
    look_at_owner();
    if (HasFatalFailure()) return;
    serve_another(start, look_at_owner);
    if (!here_.stops) return;
    if (goes_over_tcp(here_.route)) std::this_thread::sleep_until(over);
    victim.process().resume();
    std::string said = victim.end();
    if (said.starts_with("again ")) {
      EXPECT_EQ(said, "again 0");
      said = victim.said();
    }
    EXPECT_TRUE(said == "ended 0" || said == "ended " + std::to_string(timed_out_of_user_)) << said;
    look_at_owner();
  }

  static void serve_another(const start_user& start, const std::function<void()>& look_at_owner) {
    plain_user other = start("120");
    ASSERT_TRUE(other.moving());
    EXPECT_EQ(other.end(), "ended 0");
    look_at_owner();
  }

  std::string way() const { return here_.writes ? "write" : "read"; }

  int timed_out_of_user_ = 0;
};

/// The owner has UCX alone.
class PlainUserDeathAtPlainOwner : public PlainUserDeath {
 protected:
  PlainUserDeathAtPlainOwner() { timed_out_of_user_ = std::error_code(errc::timed_out).value(); }

  plain_user start_user_of(const char* seconds, const char* how = "") {
    std::vector<std::string> words{way(), here_.route.transports, owner_.where(),
                                   to_hex(owner_.descriptor().encode()), seconds};
    if (*how != '\0') words.emplace_back(how);
    return plain_user("ucxio-plain-user", words);
  }
  void look_at_owner() {
    ASSERT_TRUE(owner_.process().running()) << "it ended with its user";
    EXPECT_NE(owner_.ask("sum"), "no answer");
  }
  footprint of_owner() { return footprint_of(owner_.process().pid()); }

  plain_owner owner_{here_.route.transports, here_.route.by_listener ? "127.0.0.1" : "address",
                     here_.route.memory, death_size};
};

TEST_P(PlainUserDeathAtPlainOwner, LeavesTheOwnerWhole) {
  lose_many(
      [&](double moment) {
        lose([&](const char* seconds) { return start_user_of(seconds); }, [&] { look_at_owner(); },
             moment);
      },
      [&] { return of_owner(); });
}

/// It stops itself, so that it is in the middle of a transfer for sure.
class PlainUserThatStops : public PlainUserDeathAtPlainOwner {};

TEST_P(PlainUserThatStops, IsTimedOutAndLeavesTheOwnerWhole) {
  const auto start = [&](const char* seconds) { return start_user_of(seconds); };
  const auto lose_one = [&](double) {
    plain_user victim = start_user_of(user_deadline, "stops");
    ASSERT_TRUE(victim.moving());
    ASSERT_TRUE(victim.process().has_stopped_within(30s));
    const auto over = clock::now() + behind_user_deadline;
    serve_another(start, [&] { look_at_owner(); });
    ASSERT_FALSE(HasFatalFailure());
    std::this_thread::sleep_until(over);
    victim.process().resume();
    const std::string late = victim.said();
    ASSERT_TRUE(late.starts_with("late ")) << late;
    EXPECT_LE(std::chrono::milliseconds(std::stoll(late.substr(5))), most_late);
    std::string said = victim.said();
    // The sockets may take all that is left of a write at once, before anybody looks at the clock.
    if (!here_.writes || said != "ended 0") {
      EXPECT_EQ(said, "again 0");
      EXPECT_EQ(victim.said(), "ended " + std::to_string(timed_out_of_user_));
    }
    look_at_owner();
    serve_another(start, [&] { look_at_owner(); });
  };
  lose_many(lose_one, [&] { return of_owner(); });
}

INSTANTIATE_TEST_SUITE_P(Over, PlainUserThatStops,
                         testing::Combine(testing::Values(plain_routes[0], plain_routes[1]),
                                          testing::Bool(), testing::Values(true)),
                         name_of_death);

/// Not those who are killed over TCP: UCX ends the process that answers them (1.13.1, 1.22.0), also
/// where neither has this library.
std::vector<death_parameters> users_of_plain_owners() {
  std::vector<death_parameters> all;
  for (const plain_route& route : plain_routes) {
    for (const bool writes : {false, true}) {
      all.emplace_back(route, writes, true);
      if (!goes_over_tcp(route)) all.emplace_back(route, writes, false);
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Over, PlainUserDeathAtPlainOwner,
                         testing::ValuesIn(users_of_plain_owners()), name_of_death);

/// The user has UCX alone. It maps the memory, has CMA copy it, or asks this library's UCX for it.
class PlainUserDeathAtOurOwner : public PlainUserDeath {
 protected:
  void SetUp() override {
    PlainUserDeath::SetUp();
    if (goes_over_tcp(here_.route) && !here_.stops) {
      GTEST_SKIP() << "UCX ends an owner whose user is killed over TCP";
    }
  }
};

TEST_P(PlainUserDeathAtOurOwner, LeavesTheOwnerWhole) {
  const plain_route& route = here_.route;
  test_peer owner(goes_over_tcp(route) ? "tcp" : "shared");
  // CMA copies what is not UCX's own memory. UCX's key tells of no rights there.
  const remote_descriptor memory =
      std::string(route.name) == "Cma"
          ? remote_descriptor::decode(
                from_hex(owner.ask("lend " + std::to_string(death_size) + " 1")))
          : owner.allocate(death_size);
  const std::string where = to_hex(parse_worker_address(owner.ask("address")).native());
  timed_out_of_user_ = UCS_ERR_ENDPOINT_TIMEOUT;
  std::ostringstream base;
  base << std::hex << memory.address;
  const auto look = [&] { return footprint_of(owner.process().pid()); };
  const auto lose_one = [&](double moment) {
    lose(
        [&](const char*) {
          return plain_user("ucxio-plain-peer",
                            {route.transports, way(), where, to_hex(memory.remote_key), base.str(),
                             std::to_string(death_size)});
        },
        [&] { ASSERT_TRUE(owner.process().running()) << "it ended with its user"; }, moment);
  };
  lose_many(lose_one, look);
}

INSTANTIATE_TEST_SUITE_P(Over, PlainUserDeathAtOurOwner,
                         testing::Combine(testing::Values(plain_routes[0], plain_routes[2],
                                                          plain_routes[3]),
                                          testing::Bool(), testing::Bool()),
                         name_of_death);

}  // namespace
}  // namespace ucx::test
