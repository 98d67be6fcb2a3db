// ucx::fstream over URLs of a server in this process, by real connections.
#include "ucx/fstream.hpp"
#include "support/transports/network.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/streams/stream_script.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using std::ios;
using testing::HasSubstr;

constexpr auto both = ios::in | ios::out;

/// A server with one name.
struct served_text {
  explicit served_text(std::string text, access granted = access::read_write)
      : bytes(std::move(text)),
        published(server.publish("text", std::as_writable_bytes(std::span(bytes)), granted)) {}

  std::string url() const { return server.url("text"); }

  std::string bytes;  ///< As the owner sees them.
  ucx::server server{served_there()};
  publication published;
};

TEST(UrlFstream, ReadsLines) {
  const served_text served("one\ntwo\nthree\n");
  ucx::ifstream in(served.url());
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_TRUE(in.eof());
  EXPECT_FALSE(in.bad());
  EXPECT_FALSE(in.error());
  EXPECT_EQ(in.error_message(), "");
}

TEST(UrlFstream, WritesInPlace) {
  const served_text served("..........");
  {
    ucx::ofstream out(std::filesystem::path(served.url()));
    out << "n=" << 42 << std::flush;
    EXPECT_EQ(served.bytes, "n=42......");
    out << ';';
  }
  EXPECT_EQ(served.bytes, "n=42;.....") << "the destructor closes";
  ucx::fstream edit(served.url());
  edit.seekp(-2, ios::end);
  edit << "ok";
  edit.close();
  EXPECT_TRUE(edit.good());
  EXPECT_EQ(served.bytes, "n=42;...ok");
}

TEST(UrlFstream, ReadsAFileThatIsPublished) {
  const temporary_directory directory;
  const std::string text = sample_text(3'000'000, 7);
  ucx::server server{served_there()};
  const publication published = server.publish_file("a file", directory.make("file", text));
  ucx::ifstream in(server.url("a file"), ios::binary);
  std::ostringstream got;
  got << in.rdbuf();
  EXPECT_TRUE(got.str() == text);
  ucx::fstream writing(server.url("a file"));
  EXPECT_EQ(writing.error(), errc::permission_denied);
}

TEST(UrlFstream, OpensWhatAnyNameSays) {
  std::string bytes = "text";
  ucx::server server{served_there()};
  for (const std::string name : {"a b", "100%", "a/b/c", "\xc3\xa4\xe2\x82\xac", "?#"}) {
    const publication published =
        server.publish(name, std::as_writable_bytes(std::span(bytes)), access::read);
    SCOPED_TRACE(server.url(name));
    ucx::ifstream in(server.url(name));
    std::string word;
    in >> word;
    EXPECT_EQ(word, "text") << in.error_message();
  }
}

class UrlFstreamOracle : public testing::TestWithParam<std::size_t> {};

TEST_P(UrlFstreamOracle, Agrees) {
  const temporary_directory directory;
  const std::size_t buffer = GetParam();
  const stream_options options{.buffer_size = buffer};
  for (const std::size_t size : {std::size_t{0}, std::size_t{4096}, 3 * buffer + 100}) {
    SCOPED_TRACE("size " + std::to_string(size));
    const std::string text = sample_text(size, size + 1);
    const served_text served(text);
    std::fstream oracle(directory.make("file", text), both | ios::binary);
    ucx::fstream ours(served.url(), both | ios::binary, options);
    ASSERT_TRUE(ours.is_open()) << ours.error_message();
    stream_script script(size, text,
                         std::max<std::size_t>(200, std::min<std::size_t>(2 * buffer, 200'000)));
    ASSERT_TRUE(script.play(ours, oracle, 150));
    ucx::fstream moved(std::move(ours));
    ASSERT_TRUE(script.play(moved, oracle, 100));
    ucx::fstream other(directory / "file", ios::in);
    swap(moved, other);
    ASSERT_TRUE(script.play(other, oracle, 100));
    other.close();
    oracle.close();
    EXPECT_TRUE(served.bytes == script.content());
    EXPECT_TRUE(content_of(directory / "file") == script.content());
  }
}

INSTANTIATE_TEST_SUITE_P(Buffer, UrlFstreamOracle,
                         testing::Values<std::size_t>(1, 5, 4096, stream_options().buffer_size),
                         testing::PrintToStringParamName());

/// What a region of fixed size makes of a mode that std::fstream takes.
std::error_code expected_of(ios::openmode mode, bool std_opens) {
  if ((mode & (ios::trunc | ios::app)) != 0 && std_opens) return errc::not_supported;
  return std_opens ? std::error_code() : errc::invalid_argument;
}

TEST(UrlFstream, HonoursAModeOrFails) {
  const temporary_directory directory;
  const ios::openmode bits[] = {ios::in, ios::out, ios::trunc, ios::app, ios::ate, ios::binary};
  served_text served("0123456789");
  for (unsigned chosen = 0; chosen < 64; ++chosen) {
    ios::openmode mode{};
    for (unsigned i = 0; i < 6; ++i) {
      if ((chosen & (1U << i)) != 0) mode |= bits[i];
    }
    SCOPED_TRACE("mode " + std::to_string(mode));
    served.bytes = "0123456789";
    const bool std_opens = std::fstream(directory.make("file", "0123456789"), mode).is_open();
    ucx::fstream stream(served.url(), mode);
    EXPECT_EQ(stream.error(), expected_of(mode, std_opens)) << stream.error_message();
    EXPECT_EQ(stream.is_open(), !expected_of(mode, std_opens));
    EXPECT_EQ(stream.good(), stream.is_open());
    if (!stream.is_open()) {
      EXPECT_THAT(stream.error_message(), HasSubstr(served.url()));
      EXPECT_EQ(served.bytes, "0123456789");
      continue;
    }
    const std::streamoff begin = (mode & ios::ate) != 0 ? 10 : 0;
    EXPECT_EQ(std::streamoff(stream.tellg()), begin);
    stream.seekp(3);
    stream << 'w';
    stream.flush();
    EXPECT_EQ(stream.good(), (mode & ios::out) != 0);
    EXPECT_EQ(served.bytes, (mode & ios::out) != 0 ? "012w456789" : "0123456789");
    stream.clear();
    stream.seekg(4);
    EXPECT_EQ(stream.get(), (mode & ios::in) != 0 ? '4' : std::char_traits<char>::eof());
  }
}

TEST(UrlFstream, AddsItsDirectionToTheMode) {
  const served_text served("text");
  ucx::ifstream in(served.url(), ios::out);
  EXPECT_EQ(in.get(), 't') << "as std::ifstream's, it is for both then";
  ucx::ofstream out(served.url(), ios::in);
  EXPECT_TRUE(out << 'T' << std::flush);
  EXPECT_EQ(served.bytes, "Text");
  // The bit behind that of noreplace, which no standard has.
  ucx::ofstream unknown(served.url(), static_cast<ios::openmode>(1U << 7U));
  EXPECT_EQ(unknown.error(), errc::not_supported);
}

// ---- What can go wrong at opening

struct refused_name {
  std::string text;
  errc why;
  std::string says;
};

TEST(UrlFstream, TellsWhatIsWrongWithAUrl) {
  const served_text served("text");
  const std::string server = served.server.url();
  const std::string missing_slash = std::filesystem::path(served.url()).lexically_normal().string();
  for (const refused_name& each : std::vector<refused_name>{
           {"ucx:", errc::bad_url, "//"},
           {"ucx://127.0.0.1/text", errc::bad_url, "port"},
           {"UCX://127.0.0.1:0/text", errc::bad_url, "port"},
           {server + "/%zz", errc::bad_url, "hexadecimal"},
           {server, errc::bad_url, "name"},
           {server + "/", errc::bad_url, "name"},
           {missing_slash, errc::bad_url, "slash"},
           {server + "/nothing", errc::no_such_name, "nothing of this name"},
           {"ucx://127.0.0.1:1/text", errc::connection_refused, "127.0.0.1"}}) {
    SCOPED_TRACE(each.text);
    ucx::ifstream in(each.text);
    EXPECT_FALSE(in.is_open());
    EXPECT_TRUE(in.fail());
    EXPECT_FALSE(in.bad());
    EXPECT_EQ(in.error(), each.why) << in.error_message();
    EXPECT_THAT(in.error_message(), HasSubstr(each.text));
    EXPECT_THAT(in.error_message(), HasSubstr(each.says));
    in.get();
    EXPECT_EQ(in.error(), each.why) << "what comes later does not hide it";
  }
}

TEST(UrlFstream, LeavesInErrnoWhyItCanNotOpen) {
  const served_text served("text", access::read);
  const auto errno_of = [](const std::string& name, ios::openmode mode) {
    errno = 0;
    const ucx::fstream stream(name, mode);
    return stream.is_open() ? 0 : errno;
  };
  EXPECT_EQ(errno_of(served.server.url("nothing"), ios::in), ENOENT);
  EXPECT_EQ(errno_of(served.url(), both), EACCES);
  EXPECT_EQ(errno_of(served.url(), ios::in | ios::trunc), EINVAL);
  EXPECT_EQ(errno_of(served.url(), ios::out | ios::trunc), ENOTSUP);
  EXPECT_EQ(errno_of("ucx://127.0.0.1/text", ios::in), EINVAL);
  EXPECT_EQ(errno_of("ucx://127.0.0.1:1/text", ios::in), ECONNREFUSED);
  EXPECT_EQ(errno_of("ucx://no-such-host.invalid:1/text", ios::in), EHOSTUNREACH);
  errno = EDOM;
  ucx::ifstream in(served.url());
  EXPECT_EQ(in.get(), 't');
  in.sync();
  EXPECT_EQ(errno, EDOM) << "success leaves errno alone";
  in.open(served.url());
  EXPECT_TRUE(in.fail());
  EXPECT_EQ(errno, EINVAL) << "something is open already";
}

TEST(UrlFstream, LeavesInErrnoWhyItCanNotGoOn) {
  served_text served(std::string(100'000, 'x'));
  ucx::fstream stream(served.url(), both, {.buffer_size = 1000});
  errno = 0;
  stream.seekp(0, ios::end);
  stream << "beyond" << std::flush;
  EXPECT_TRUE(stream.bad());
  EXPECT_EQ(errno, ENOSPC);
  stream.clear();
  ucx::ofstream out(served.url());
  out << "unsent";
  served.published.close();
  errno = 0;
  std::string rest(100'000, '#');
  stream.seekg(0);
  stream.read(rest.data(), 100'000);
  EXPECT_TRUE(stream.bad());
  EXPECT_EQ(errno, ESTALE);
  errno = 0;
  out.close();
  EXPECT_TRUE(out.fail());
  EXPECT_EQ(errno, ESTALE);
}

TEST(UrlFstream, ThatIsOnlyWrittenIsAtItsEndForWhoReads) {
  served_text served("text");
  ucx::fstream out(served.url(), ios::out);
  out << "TE";
  EXPECT_EQ(out.get(), std::char_traits<char>::eof());
  EXPECT_TRUE(out.eof());
  EXPECT_FALSE(out.bad()) << "as std::fstream";
  EXPECT_EQ(out.error(), errc::permission_denied);
  EXPECT_THAT(out.error_message(), HasSubstr("writing alone"));
  out.clear();
  std::string block(4, '#');
  EXPECT_EQ(out.rdbuf()->sgetn(block.data(), 4), 0);
  EXPECT_EQ(out.rdbuf()->in_avail(), -1);
  out << "XT" << std::flush;
  EXPECT_FALSE(out.error());
  EXPECT_EQ(served.bytes, "TEXT") << "what was written meanwhile is not lost";
}

TEST(UrlFstream, TellsThatARightIsMissing) {
  const served_text served("text", access::read);
  ucx::ofstream out(served.url());
  EXPECT_TRUE(out.fail());
  EXPECT_EQ(out.error(), errc::permission_denied);
  EXPECT_EQ(out.error(), std::errc::permission_denied);
  EXPECT_THAT(out.error_message(), HasSubstr(served.url()));
  ucx::fstream read_only(served.url(), ios::in);
  EXPECT_EQ(read_only.get(), 't');
  read_only.clear();
  read_only.put('x');
  EXPECT_TRUE(read_only.bad());
  EXPECT_EQ(read_only.error(), errc::permission_denied);
}

TEST(UrlFstream, ThrowsWhatStdThrowsWhereItIsAskedTo) {
  const served_text served("text");
  ucx::ifstream in;
  in.exceptions(ios::failbit);
  EXPECT_THROW(in.open(served.server.url("nothing")), std::ios_base::failure);
  EXPECT_EQ(in.error(), errc::no_such_name);
}

TEST(UrlFstream, FailsOnceTheNameIsWithdrawn) {
  served_text served(std::string(100'000, 'x'));
  ucx::fstream stream(served.url(), both, {.buffer_size = 1000});
  EXPECT_EQ(stream.get(), 'x');
  served.published.close();
  std::string rest(100'000, '#');
  stream.read(rest.data(), 100'000);
  EXPECT_TRUE(stream.bad());
  EXPECT_FALSE(stream.eof());
  EXPECT_EQ(stream.error(), errc::revoked) << stream.error_message();
  EXPECT_THAT(stream.error_message(), HasSubstr(served.server.url()));
  ucx::ifstream late(served.server.url("text"));
  EXPECT_EQ(late.error(), errc::no_such_name);
}

TEST(UrlFstream, FailsOnceTheServerIsGone) {
  std::optional<served_text> served(std::in_place, std::string(100'000, 'x'));
  const std::string url = served->url();
  ucx::ifstream in(url, ios::in, {.buffer_size = 1000});
  ucx::ofstream out(url);
  out << "unsent";
  EXPECT_EQ(in.get(), 'x');
  served.reset();
  std::string rest(100'000, '#');
  in.read(rest.data(), 100'000);
  EXPECT_TRUE(in.bad());
  EXPECT_FALSE(in.eof());
  EXPECT_TRUE(in.error() == errc::connection_reset || in.error() == errc::revoked)
      << in.error_message();
  EXPECT_THAT(in.error_message(), HasSubstr(url));
  out.close();
  EXPECT_TRUE(out.fail());
  EXPECT_TRUE(out.error()) << "what was written is not known to be visible";
  EXPECT_THAT(out.error_message(), HasSubstr(url));
  ucx::ifstream late(url);
  EXPECT_EQ(late.error(), errc::connection_refused) << late.error_message();
}

// ---- Connections

TEST(UrlFstream, SharesOneConnectionWhichLingersBehindTheLast) {
  const served_text served("some text");
  {
    std::vector<ucx::ifstream> streams;
    for (int i = 0; i < 64; ++i) streams.emplace_back(served.url());
    for (ucx::ifstream& each : streams) EXPECT_EQ(each.get(), 's');
    EXPECT_EQ(served.server.statistics().clients, 1U);
    EXPECT_EQ(served.server.statistics().clients_served, 1U);
    EXPECT_EQ(served.server.statistics().opens, 64U);
    while (streams.size() > 1) streams.pop_back();
    const std::uint64_t opens = client::shared(ucx::url(served.server.url())).statistics().opens;
    EXPECT_EQ(opens, 64U) << "the one stream that is left keeps the client";
    streams.front().close();
  }
  ucx::ifstream again(served.url());
  EXPECT_EQ(again.get(), 's');
  EXPECT_EQ(served.server.statistics().clients_served, 1U);
}

TEST(UrlFstream, OpensThroughAClientThatItIsGiven) {
  const served_text served("12 34");
  std::optional<client> own(std::in_place, served.server.url());
  ucx::ifstream in(*own, "text");
  ucx::fstream edit;
  edit.open(*own, "text", both);
  ucx::ofstream none(*own, "nothing");
  EXPECT_EQ(none.error(), errc::no_such_name);
  EXPECT_THAT(none.error_message(), HasSubstr(served.server.url("nothing")));
  own.reset();
  int a = 0;
  int b = 0;
  in >> a >> b;
  EXPECT_EQ(a + b, 46) << "a stream keeps the connection";
  edit << "56" << std::flush;
  EXPECT_EQ(served.bytes, "56 34");
  EXPECT_EQ(served.server.statistics().clients_served, 1U);
}

TEST(UrlFstream, OpensInManyThreadsAtOnce) {
  const served_text served("some text");
  std::vector<std::thread> threads;
  std::atomic<int> read{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int times = 0; times < 5; ++times) {
        ucx::ifstream in(served.url());
        std::string all;
        if (std::getline(in, all) && all == "some text") ++read;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(read, 40);
}

}  // namespace
}  // namespace ucx::test
