// ucx::fstream over what a server publishes, by the simulated network: everything that a region of
// fixed size and a failing transfer make different from a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <ios>
#include <limits>
#include <locale>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "support/basics/effort.hpp"
#include "support/fake_ucp/fake_network.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/streams/stream_script.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/server.hpp"
#include "worker/core_access.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using std::ios;
using testing::HasSubstr;
using traits = std::char_traits<char>;

constexpr auto both = ios::in | ios::out;

/// A server that publishes "text", and a client of it, in two simulated processes.
class served_text {
 public:
  explicit served_text(std::string text, access granted = access::read_write,
                       std::uint64_t seed = 1)
      : network({}, seed),
        server_process(network.add_process("server")),
        client_process(network.add_process("client")),
        bytes(std::move(text)),
        server(make_server()),
        published(server.publish("text", std::as_writable_bytes(std::span(bytes)), granted)),
        reader(make_client()) {}
  ~served_text() {
    for (const std::string& violation : network.violations()) ADD_FAILURE() << violation;
    server_process.on_pump({});
    client_process.on_pump({});
  }
  served_text(const served_text&) = delete;
  served_text& operator=(const served_text&) = delete;

  fake_network network;
  fake_process& server_process;
  fake_process& client_process;
  std::string bytes;  ///< As the server sees them.
  ucx::server server;
  publication published;
  client reader;

 private:
  static context make_context(fake_process& process) {
    std::error_code ec;
    context made = detail::core_access::make_context(process.api(), {}, ec);
    if (ec) throw std::system_error(ec, process.name());
    return made;
  }
  ucx::server make_server() {
    server_options options;
    options.bind.clear();
    options.worker.progress = progress_mode::external;
    std::error_code ec;
    ucx::server made = detail::core_access::make_server(make_context(server_process), options, ec);
    if (ec) throw std::system_error(ec, "making a server");
    server_process.on_pump([this] { server.worker().progress(); });
    return made;
  }
  client make_client() {
    client_options options;
    options.worker.operation_timeout = 1s;
    std::error_code ec;
    client made = detail::core_access::make_client(make_context(client_process),
                                                   server.address().worker, options, ec);
    if (ec) throw std::system_error(ec, "making a client");
    client_process.on_pump([this] { reader.worker().progress(); });
    return made;
  }
};

// ---- The same as a file of the same size

class NamedFstreamOracle : public testing::TestWithParam<std::size_t> {};

TEST_P(NamedFstreamOracle, AgreesWhileItIsMovedAndSwapped) {
  const temporary_directory directory;
  const stream_options options{.buffer_size = GetParam()};
  for (std::uint64_t seed = 1; seed <= effort<std::uint64_t>(6, 2); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::string text = sample_text(seed % 2 == 0 ? 20'000 : seed * 100, seed);
    served_text served(text, access::read_write, seed);
    served.network.faults().reorder(0.2);
    std::fstream oracle(directory.make("file", text), both | ios::binary);
    ucx::fstream ours(served.reader, "text", both | ios::binary, options);
    ASSERT_TRUE(ours.is_open()) << ours.error_message();
    const std::size_t reach =
        std::max(effort<std::size_t>(9000), std::min<std::size_t>(3 * GetParam(), 9000));
    stream_script script(seed, text, reach);
    ASSERT_TRUE(script.play(ours, oracle, 200));
    ucx::fstream moved(std::move(ours));
    EXPECT_FALSE(ours.is_open());
    ASSERT_TRUE(script.play(moved, oracle, 200));
    ucx::fstream other(directory.make("local", "local"));
    swap(moved, other);
    EXPECT_EQ(moved.get(), 'l');
    ASSERT_TRUE(script.play(other, oracle, 100));
    moved = std::move(other);
    ASSERT_TRUE(script.play(moved, oracle, 100));
    moved.close();
    EXPECT_TRUE(moved.error() == std::error_code());
    EXPECT_TRUE(served.bytes == script.content());
  }
}

INSTANTIATE_TEST_SUITE_P(Buffer, NamedFstreamOracle,
                         testing::Values<std::size_t>(1, 2, 5, 4096, stream_options().buffer_size),
                         testing::PrintToStringParamName());

/// What a program sees that goes somewhere with seekg, and tries to read there.
std::string visit(std::iostream& stream, std::streamoff offset, ios::seekdir from) {
  stream.clear();
  stream.seekg(offset, from);
  std::string seen = std::to_string(stream.rdstate()) + " at " + std::to_string(stream.tellg());
  char c = '#';
  stream.get(c);
  seen += " got " + std::to_string(c) + " then " + std::to_string(stream.rdstate());
  stream.clear();
  return seen + " at " + std::to_string(stream.tellp());
}

TEST(NamedFstream, SeeksAsAFileAnywhere) {
  const temporary_directory directory;
  served_text served("0123456789");
  std::fstream oracle(directory.make("file", "0123456789"));
  ucx::fstream ours(served.reader, "text");
  constexpr auto largest = std::numeric_limits<std::streamoff>::max();
  for (const auto& [offset, from] :
       std::initializer_list<std::pair<std::streamoff, ios::seekdir>>{{9, ios::beg},
                                                                      {10, ios::beg},
                                                                      {11, ios::beg},
                                                                      {5, ios::cur},
                                                                      {-17, ios::cur},
                                                                      {7, ios::end},
                                                                      {-10, ios::end},
                                                                      {-11, ios::end},
                                                                      {1'000'000'000'000, ios::beg},
                                                                      {-1, ios::beg},
                                                                      {0, ios::end},
                                                                      {-3, ios::cur},
                                                                      {3, ios::cur}}) {
    SCOPED_TRACE(std::to_string(offset) + " from " + std::to_string(from));
    EXPECT_EQ(visit(ours, offset, from), visit(oracle, offset, from));
  }
  // Where a file system has its own limit, ours is where a byte can still have an end.
  EXPECT_TRUE(ours.seekg(largest - 1, ios::beg));
  EXPECT_EQ(ours.tellg(), std::streampos(largest - 1));
  EXPECT_FALSE(ours.seekg(1, ios::cur));
  EXPECT_EQ(ours.error(), errc::out_of_range);
  ours.clear();
  EXPECT_EQ(ours.tellg(), std::streampos(largest - 1));
  EXPECT_FALSE(ours.seekg(largest, ios::beg));
  EXPECT_EQ(ours.error(), errc::out_of_range);
}

TEST(NamedFstream, HasNoRoomBeyondTheEnd) {
  served_text served("0123456789");
  ucx::fstream stream(served.reader, "text", both, {.buffer_size = 4});
  stream.seekp(12);
  EXPECT_TRUE(stream.good());
  EXPECT_EQ(stream.rdbuf()->in_avail(), 0);
  EXPECT_FALSE(stream.put('x'));
  EXPECT_TRUE(stream.bad());
  EXPECT_EQ(stream.error(), errc::no_space);
  stream.clear();
  EXPECT_EQ(std::streamoff(stream.tellp()), 12);
  EXPECT_FALSE(stream.write("many bytes", 10));
  EXPECT_EQ(stream.error(), errc::no_space);
  stream.clear();
  stream.unget();
  EXPECT_TRUE(stream.bad());
  stream.clear();
  stream.seekp(8);
  EXPECT_FALSE(stream << "abc" << std::flush);
  EXPECT_EQ(stream.error(), errc::no_space);
  stream.clear();
  stream.flush();
  EXPECT_EQ(served.bytes, "01234567ab");
}

// ---- Opening

TEST(NamedFstream, OpensClosesAndOpensAgain) {
  const temporary_directory directory;
  served_text served("remote text");
  ucx::fstream stream;
  std::string word;
  for (int times = 0; times < 3; ++times) {
    stream.open(directory.make("file", "local text"));
    stream >> word;
    EXPECT_EQ(word, "local");
    stream.close();
    stream.open(served.reader, "text");
    EXPECT_TRUE(stream.good()) << stream.error_message();
    EXPECT_EQ(stream.rdbuf()->open(served.reader, "text", both), nullptr) << "it is open";
    EXPECT_EQ(stream.error(), errc::invalid_argument);
    stream >> word;
    EXPECT_EQ(word, "remote");
    EXPECT_EQ(stream.rdbuf()->close(), stream.rdbuf());
    EXPECT_EQ(stream.rdbuf()->close(), nullptr);
    EXPECT_FALSE(stream.is_open());
    EXPECT_EQ(stream.get(), traits::eof()) << "nothing is left of what was buffered";
    EXPECT_EQ(stream.error(), errc::closed);
    stream.clear();
  }
}

TEST(NamedFstream, NamesWhatItCouldNotOpen) {
  served_text served("text", access::read);
  ucx::ifstream unknown(served.reader, "nothing");
  EXPECT_TRUE(unknown.fail());
  EXPECT_EQ(unknown.error(), errc::no_such_name);
  EXPECT_THAT(unknown.error_message(), HasSubstr("nothing"));
  ucx::fstream writing(served.reader, "text");
  EXPECT_EQ(writing.error(), errc::permission_denied);
  ucx::ofstream truncating(served.reader, "text", ios::trunc);
  EXPECT_EQ(truncating.error(), errc::not_supported);
  EXPECT_THAT(truncating.error_message(), HasSubstr("text: "));
  EXPECT_THAT(truncating.error_message(), HasSubstr("fixed size"));
}

TEST(NamedFstream, WaitsForASilentServerNoLongerThanItMay) {
  served_text served("text");
  served.server_process.stop();
  const auto begin = served.network.now();
  ucx::ifstream in(served.reader, "text");
  EXPECT_TRUE(in.error() == errc::timed_out || in.error() == errc::connection_reset)
      << in.error_message();
  EXPECT_EQ(errno, in.error() == errc::timed_out ? ETIMEDOUT : ECONNRESET);
  EXPECT_LE(served.network.now() - begin, 6s);
  served.server_process.resume();
}

/// Says of itself that it converts.
class converting_codecvt : public std::codecvt<char, char, std::mbstate_t> {
 protected:
  bool do_always_noconv() const noexcept override { return false; }
};

TEST(NamedFstream, RefusesToConvert) {
  served_text served("text");
  const std::locale converting(std::locale::classic(), new converting_codecvt);
  ucx::ifstream in;
  in.imbue(converting);
  in.open(served.reader, "text");
  EXPECT_EQ(in.error(), errc::not_supported);
  EXPECT_THAT(in.error_message(), HasSubstr("codecvt"));
  in.imbue(std::locale::classic());
  in.open(served.reader, "text");
  EXPECT_TRUE(in.is_open());
  in.imbue(converting);
  EXPECT_EQ(in.error(), errc::not_supported) << "and goes on without";
  EXPECT_EQ(in.get(), 't');
  in.imbue(std::locale::classic());
  EXPECT_EQ(in.get(), 'e');
  EXPECT_FALSE(in.error());
}

TEST(NamedFstream, TakesTheSizeOfAGivenBuffer) {
  served_text served(std::string(100'000, 'x'));
  const auto messages = [&](std::streamsize size) {
    ucx::ofstream out;
    std::array<char, 20'000> memory{};
    EXPECT_EQ(out.rdbuf()->pubsetbuf(size > 0 ? memory.data() : nullptr, size), out.rdbuf());
    out.open(served.reader, "text", ios::out, {.buffer_size = 5000});
    EXPECT_EQ(out.rdbuf()->pubsetbuf(memory.data(), 7), out.rdbuf()) << "too late, and ignored";
    const std::uint64_t before = served.client_process.count(call::am_send);
    for (int i = 0; i < 20'000; ++i) out.put('y');
    out.flush();
    const std::uint64_t after = served.client_process.count(call::am_send);
    EXPECT_EQ(memory[0], '\0');
    return after - before;
  };
  EXPECT_EQ(messages(20'000), 1U);
  EXPECT_EQ(messages(10'000), 2U);
  EXPECT_EQ(messages(0), 4U) << "as the options say";
}

// ---- Failing transfers

TEST(NamedFstream, ShowsBadbitWhenTheServerDies) {
  served_text served(std::string(100'000, 'x'));
  ucx::ifstream in(served.reader, "text", ios::in, {.buffer_size = 1000});
  EXPECT_EQ(in.get(), 'x');
  served.server_process.kill();
  std::string rest(100'000, '#');
  in.read(rest.data(), 100'000);
  EXPECT_TRUE(in.bad());
  EXPECT_FALSE(in.eof());
  EXPECT_EQ(in.error(), errc::connection_reset);
  EXPECT_THAT(in.error_message(), HasSubstr("text"));
  in.clear();
  in.exceptions(ios::badbit);
  EXPECT_THROW(in.read(rest.data(), 100'000), ucx::error);
}

TEST(NamedFstream, TellsFromCloseThatAWriteFailed) {
  for (const bool through_close : {true, false}) {
    served_text served("..........");
    ucx::ofstream out(served.reader, "text");
    out << "lost";
    EXPECT_TRUE(out.good()) << "it is only buffered";
    served.server_process.kill();
    const auto begin = served.network.now();
    if (through_close) {
      out.close();
      EXPECT_TRUE(out.fail());
      EXPECT_FALSE(out.is_open());
      EXPECT_EQ(out.error(), errc::connection_reset) << out.error_message();
      EXPECT_THAT(out.error_message(), HasSubstr("text"));
    } else {
      const ucx::ofstream dying(std::move(out));
    }
    EXPECT_LE(served.network.now() - begin, 6s);
  }
}

TEST(NamedFstream, FailsOnceTheNameIsWithdrawn) {
  served_text served("0123456789");
  ucx::fstream stream(served.reader, "text");
  stream << "ab" << std::flush;
  EXPECT_EQ(served.bytes, "ab23456789");
  served.published.close();
  stream << "cd";
  EXPECT_FALSE(stream.flush());
  EXPECT_EQ(stream.error(), errc::revoked) << stream.error_message();
  EXPECT_EQ(served.bytes, "ab23456789");
}

TEST(NamedFstream, MovesWithWhatIsUnsent) {
  served_text served("..........");
  ucx::ofstream out(served.reader, "text");
  out << "abc";
  ucx::ofstream moved(std::move(out));
  moved << "def";
  EXPECT_EQ(served.bytes, "..........");
  ucx::ofstream assigned(served.reader, "text");
  assigned << "ABCDEFGHI";
  assigned = std::move(moved);
  EXPECT_EQ(served.bytes, "ABCDEFGHI.") << "what it was before is closed";
  assigned << 'g';
  assigned.close();
  EXPECT_EQ(served.bytes, "abcdefgHI.");
  EXPECT_FALSE(out.is_open());
  EXPECT_FALSE(moved.is_open());
}

}  // namespace
}  // namespace ucx::test
