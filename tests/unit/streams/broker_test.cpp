// What a broker answers to ends that ask it in one version or another.
#include "ucx/pipe_broker.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pipes/pipe_introduction.hpp"
#include "pipes/pipe_meeting.hpp"
#include "support/basics/changed_variable.hpp"
#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "ucx/client.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/message.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/request.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;
using test::changed_variable;
using test::soon;
using test::temporary_directory;

/// An end that has asked.
class asking_end {
 public:
  asking_end(const server& there, const pipe_question& said,
             const context_options& context = {.share_memory = false})
      : client_(url(there.url()), client_options{.context = context}),
        heard_(pipe_answer::longest) {
    endpoint to = client_.connection();
    answer_ = to.start_receive(pipe_answer_tag, std::span(heard_), {.timeout = 60s});
    to.send(active_message{pipe_question_number}, encode(said), {.until = send_until::matched});
  }
  bool is_answered() const { return answer_.done(); }
  /// Waits for the answer.
  pipe_answer answer() {
    answer_.wait();
    const auto length = static_cast<std::size_t>(answer_.received().length);
    const auto made = decode_pipe_answer(std::span<const std::byte>(heard_).first(length));
    EXPECT_TRUE(made);
    return made.value_or(pipe_answer{.status = 0xffffU});
  }

 private:
  client client_;
  std::vector<std::byte> heard_;
  request answer_;
};

class BrokerOfVersions : public testing::Test {
 protected:
  static pipe_question reader(std::uint16_t version, const std::string& address = "127.0.0.1:1") {
    return {.version = version, .role = pipe_role::reader, .name = "p", .address = address};
  }
  static pipe_question writer(std::uint16_t version) {
    return {.version = version, .role = pipe_role::writer, .name = "p"};
  }
  static constexpr std::uint32_t mismatch = static_cast<std::uint32_t>(errc::version_mismatch);

  server there_{server_options{.bind = "127.0.0.1:0", .context = {.transports = {"socket"}}}};
  const pipe_broker broker_{there_};
};

TEST_F(BrokerOfVersions, RefusesAWriterThatAloneHasAKey) {
  asking_end older(there_, reader(pipe_meeting_version));
  asking_end newer(there_, writer(keyed_meeting_version));
  EXPECT_EQ(newer.answer().status, mismatch);
  EXPECT_FALSE(older.is_answered());
  asking_end fitting(there_, writer(pipe_meeting_version));
  EXPECT_EQ(fitting.answer().status, 0U);
  EXPECT_EQ(older.answer().status, 0U);
}

TEST_F(BrokerOfVersions, RefusesAWriterThatAloneHasNoKey) {
  for (const std::uint16_t version : {oldest_meeting_version, pipe_meeting_version}) {
    asking_end newer(there_, reader(keyed_meeting_version));
    asking_end older(there_, writer(version));
    EXPECT_EQ(older.answer().status, mismatch);
    asking_end fitting(there_, writer(keyed_meeting_version));
    EXPECT_EQ(fitting.answer().status, 0U);
    EXPECT_EQ(newer.answer().version, keyed_meeting_version);
  }
}

TEST_F(BrokerOfVersions, RefusesAReaderThatAloneHasNoKey) {
  asking_end waiting(there_, writer(keyed_meeting_version));
  asking_end older(there_, reader(pipe_meeting_version));
  EXPECT_EQ(older.answer().status, mismatch);
  EXPECT_FALSE(waiting.is_answered());
}

TEST_F(BrokerOfVersions, IntroducesAFurtherEndThatFits) {
  asking_end older(there_, reader(pipe_meeting_version, "127.0.0.1:1"));
  asking_end newer(there_, reader(keyed_meeting_version, "127.0.0.1:2"));
  asking_end writes(there_, writer(keyed_meeting_version));
  const pipe_answer said = writes.answer();
  EXPECT_EQ(said.status, 0U);
  EXPECT_EQ(said.address, "127.0.0.1:2");
  EXPECT_EQ(newer.answer().token, said.token);
  EXPECT_FALSE(older.is_answered());
}

/// A server by TLS and a Unix socket, which ends of this user take where they name no token.
class BrokerOfWays : public testing::Test {
 protected:
  static pipe_question question(pipe_role role) {
    return {.version = keyed_meeting_version,
            .role = role,
            .name = "p",
            .address = role == pipe_role::reader ? "127.0.0.1:1" : ""};
  }
  std::filesystem::path tokens() const { return folder_ / "config/ucxio/tokens"; }
  /// An end that comes by TLS.
  asking_end by_tls(pipe_role role) const {
    return asking_end(there_, question(role), {.token_file = tokens()});
  }

  const temporary_directory folder_;
  const changed_variable config_{"XDG_CONFIG_HOME", (folder_ / "config").c_str()};
  const changed_variable run_{"XDG_RUNTIME_DIR", (folder_ / ".").c_str()};
  const changed_variable token_{"UCXIO_TOKEN", nullptr};
  server there_;
  const pipe_broker broker_{there_};
};

TEST(PipeMeetingTime, LetsTheServerTakeAsLongAsTheMeeting) {
  EXPECT_EQ(time_for_the_server({}), 30s);
  EXPECT_EQ(time_for_the_server({.connect_timeout = 90s}), 90s);
  EXPECT_EQ(time_for_the_server({.connect_timeout = 3s}), 3s);
  EXPECT_EQ(time_for_the_server({.connect_timeout = 1ms}), 1s);
}

TEST_F(BrokerOfWays, KeepsAnEndThatCameByAnotherWayFromNone) {
  if (!there_.url().starts_with("ucxs://")) GTEST_SKIP() << "this build has no TLS";
  const asking_end waits = by_tls(pipe_role::writer);
  EXPECT_TRUE(soon([&] { return broker_.waiting() == 1; }));
  asking_end refused(there_, question(pipe_role::reader));
  EXPECT_EQ(refused.answer().status, static_cast<std::uint32_t>(errc::not_secure));
  EXPECT_FALSE(waits.is_answered());
  asking_end near(there_, question(pipe_role::writer));
  EXPECT_TRUE(soon([&] { return broker_.waiting() == 2; }));
  asking_end fits(there_, question(pipe_role::reader));
  EXPECT_EQ(fits.answer().status, 0U);
  EXPECT_EQ(near.answer().status, 0U);
  EXPECT_FALSE(waits.is_answered());
}

}  // namespace
}  // namespace ucx::detail
