// Clients over sockets that die in each state: the server lives, serves others, and keeps nothing.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "pipes/pipe_introduction.hpp"
#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/transports/url_scheme.hpp"
#include "ucx/client.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/publication.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"
#include "unit/carrier/wire_peer.hpp"

namespace ucx::test {
namespace {

using detail::opcode;

/// How far a client comes.
enum class last_step {
  connect,
  handshake,
  preamble,
  hello,
  welcome,
  frame,
  question,
  open,
  create,
  read,
  write,
  meeting,
  close,
};

struct step_name {
  last_step step;
  const char* name;
};

constexpr step_name all_steps[] = {{last_step::connect, "before_a_word"},
                                   {last_step::handshake, "in_the_handshake"},
                                   {last_step::preamble, "after_the_preamble"},
                                   {last_step::hello, "in_hello"},
                                   {last_step::welcome, "after_hello"},
                                   {last_step::frame, "in_a_frame"},
                                   {last_step::question, "in_open"},
                                   {last_step::open, "after_open"},
                                   {last_step::create, "with_a_new_file"},
                                   {last_step::read, "in_a_read"},
                                   {last_step::write, "in_a_write"},
                                   {last_step::meeting, "in_a_meeting"},
                                   {last_step::close, "in_close"}};

void PrintTo(const step_name& step, std::ostream* out) { *out << step.name; }

std::size_t descriptors_of_this_process() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

class DyingClient : public testing::TestWithParam<std::tuple<step_name, std::string>> {
 protected:
  static constexpr std::size_t memory_size = std::size_t{4} << 20U;

  DyingClient() {
    shown_ = serving_.publish("memory", std::span<std::byte>(memory_), access::read_write);
    store_ = serving_.publish_store(files_ / "", {.prefix = "store", .writable = true});
  }
  client connected() const {
    client_options options{.context = by_.context()};
    options.context.transports.clear();  // the URL says it
    return client(url(serving_.url()), options);
  }
  /// Comes as far as `step`, in the middle of what that is.
  void come(wire_peer& peer, last_step step) {
    switch (step) {
      case last_step::connect:
        return;
      case last_step::handshake:
        if (peer.is_by_tls()) {
          EXPECT_TRUE(peer.shake_once());
        } else {
          peer.say(std::span<const std::byte>(detail::preamble::encoded).first(5));
        }
        return;
      case last_step::preamble:
        return peer.say_preamble();
      case last_step::hello:
        peer.say_preamble();
        return peer.say(peer.of(opcode::hello), {}, 30);
      default:
        break;
    }
    peer.greet(1);
    if (step == last_step::welcome) return;
    if (step == last_step::meeting) return wait_for_another_end(peer);
    if (step == last_step::close) return peer.say(peer.of(opcode::bye));
    peer.greet_server();
    ask(peer, step);
  }
  void ask(wire_peer& peer, last_step step) {
    if (step == last_step::frame) return peer.say(peer.of(opcode::control), memory_, 1000);
    if (step == last_step::create) {
      const auto made = peer.ask(detail::control_type::create,
                                 detail::create_body{"store/new", access::read_write});
      EXPECT_TRUE(made && detail::decode_opened(*made));
      return;
    }
    if (step == last_step::question) {
      detail::control_header asked;
      asked.type = detail::control_type::open;
      asked.request = 77;
      return peer.say_control(
          detail::encode_control(asked, detail::open_body{"store/file", access::read}));
    }
    const auto region = peer.open("memory", access::read_write);
    ASSERT_TRUE(region);
    if (step == last_step::read) {
      detail::frame said = peer.about(*region, opcode::read);
      said.length = memory_size;
      peer.say(said);
      EXPECT_EQ(peer.hear(1000).size(), 1000U);
    } else if (step == last_step::write) {
      detail::frame said = peer.about(*region, opcode::write);
      said.length = 100'000;
      peer.say(said, std::span<const std::byte>(memory_).first(100'000), 50'000);
    }
  }
  void wait_for_another_end(wire_peer& peer) {
    const std::vector<std::byte> question =
        detail::encode(detail::pipe_question{.name = "pipe", .address = "127.0.0.1:1"});
    detail::parcel said;
    said.code = detail::parcel_code::message;
    said.kind = detail::message_kind::active;
    said.session = 1;
    said.number = 1;
    said.tag = detail::pipe_question_number;
    said.length = question.size();
    peer.say(said, question);
    EXPECT_TRUE(soon([&] { return broker_.waiting() == 1; }));
  }

  const temporary_directory secrets_;
  const temporary_directory files_;
  const std::filesystem::path file_ = files_.make("file", "content");
  const url_scheme by_{std::get<1>(GetParam()), secrets_ / ""};
  std::vector<std::byte> memory_ = pattern(memory_size);
  server serving_{by_.server()};
  pipe_broker broker_{serving_};
  publication shown_;
  publication store_;
};

TEST_P(DyingClient, LeavesTheServerAsItWas) {
  client other = connected();
  remote_region opened = other.open("memory");
  // What is made once, for the first client, stays.
  {
    wire_peer first(url(serving_.url()), by_);
    first.greet(1);
    first.greet_server();
  }
  EXPECT_TRUE(soon([&] { return serving_.statistics().clients == 1; }));
  const std::size_t before = descriptors_of_this_process();
  const last_step step = std::get<0>(GetParam()).step;
  for (const bool by_reset : {true, false, true}) {
    {
      wire_peer dying(url(serving_.url()), by_);
      come(dying, step);
      dying.die(by_reset);
    }
    std::vector<std::byte> bytes(memory_size);
    opened.read_at(0, bytes);
    EXPECT_TRUE(holds_pattern(bytes));
    EXPECT_EQ(connected().list().size(), 2U);
    EXPECT_TRUE(soon([&] { return serving_.statistics().clients == 1; }))
        << serving_.statistics().clients;
    EXPECT_TRUE(soon([&] { return broker_.waiting() == 0; }));
    EXPECT_TRUE(soon([&] { return descriptors_of_this_process() <= before; }))
        << descriptors_of_this_process() << " descriptors instead of " << before;
  }
  EXPECT_FALSE(other.exists("store/new")) << "it was not committed";
}

INSTANTIATE_TEST_SUITE_P(Over, DyingClient,
                         testing::Combine(testing::ValuesIn(all_steps),
                                          testing::Values("socket", "tls", "unix")),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param).name) + "_over_" +
                                  std::get<1>(each.param);
                         });

}  // namespace
}  // namespace ucx::test
