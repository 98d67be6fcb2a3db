// A stream by URL that was opened for one direction, or to append, is given what std::fstream is
// given over a file of its own: in every openmode, and in any order of calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <random>
#include <sstream>
#include <streambuf>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "support/basics/effort.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/streams/stream_script.hpp"
#include "support/transports/network.hpp"
#include "ucx/client.hpp"
#include "ucx/fstream.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using std::ios;

std::string shown(ios::openmode mode) {
  std::string text;
  const std::pair<ios::openmode, const char*> names[] = {
      {ios::in, "in"},   {ios::out, "out"}, {ios::trunc, "trunc"},
      {ios::app, "app"}, {ios::ate, "ate"}, {ios::binary, "binary"}};
  for (const auto& [bit, name] : names) {
    if ((mode & bit) != 0) text += name;
  }
  return text.empty() ? "none" : text;
}

bool reads(ios::openmode mode) { return (mode & ios::in) != 0; }
bool writes(ios::openmode mode) { return (mode & (ios::out | ios::app)) != 0; }

/// A directory, and a server that has it as a store.
class served_directory {
 public:
  std::string url(const std::string& name) const { return server_.url() + '/' + name; }

  const temporary_directory directory;

 private:
  server server_{served_there()};
  const publication store_ = server_.publish_store(directory / "", {.writable = true});
  const client kept_{server_.url()};  // or each stream would connect anew
};

// ---- Every openmode

/// Opens, asks, reads and writes, and returns everything that came of it.
template <class Stream>
std::string use(const std::string& name, ios::openmode mode) {
  Stream stream(name, mode);
  std::streambuf& buffer = *static_cast<std::ios&>(stream).rdbuf();
  std::ostringstream seen;
  seen << "open " << stream.is_open() << ' ' << stream.rdstate();
  if constexpr (std::is_base_of_v<std::ostream, Stream>) seen << " tellp " << stream.tellp();
  if constexpr (std::is_base_of_v<std::istream, Stream>) {
    seen << " tellg " << stream.tellg() << " peek " << stream.peek() << ' ' << stream.rdstate();
    stream.clear();
    seen << " get " << stream.get() << ' ' << stream.rdstate();
    stream.clear();
    stream.unget();
    seen << " unget " << stream.rdstate();
    stream.clear();
  }
  std::string block(4, '#');
  seen << " sgetc " << buffer.sgetc() << " sgetn " << buffer.sgetn(block.data(), 4) << block;
  seen << " at " << buffer.pubseekoff(0, ios::cur) << " to " << buffer.pubseekpos(2);
  if constexpr (std::is_base_of_v<std::ostream, Stream>) {
    stream << "w" << std::flush;
    seen << " << " << stream.rdstate();
    stream.clear();
    seen << " tellp " << stream.tellp();
  }
  seen << " sputc " << buffer.sputc('c') << " sputn " << buffer.sputn("nn", 2) << " sync "
       << buffer.pubsync() << " at " << buffer.pubseekoff(0, ios::cur);
  stream.clear();
  stream.close();
  seen << " closed " << stream.rdstate() << " sgetc " << buffer.sgetc() << " sputc "
       << buffer.sputc('c') << " at " << buffer.pubseekoff(0, ios::cur);
  return seen.str();
}

template <class Ours, class Standard>
void compare_modes(const served_directory& served) {
  const std::filesystem::path ours = served.directory / "ours";
  const std::filesystem::path theirs = served.directory / "std";
  const ios::openmode bits[] = {ios::in, ios::out, ios::trunc, ios::app, ios::ate, ios::binary};
  for (unsigned chosen = 0; chosen < 64; ++chosen) {
    ios::openmode mode{};
    for (unsigned i = 0; i < 6; ++i) {
      if ((chosen & (1U << i)) != 0) mode |= bits[i];
    }
    for (const bool exists : {true, false}) {
      SCOPED_TRACE(shown(mode) + (exists ? " of a file" : " of nothing"));
      for (const auto& each : {ours, theirs}) {
        std::filesystem::remove(each);
        if (exists) std::ofstream(each) << "0123456789";
      }
      EXPECT_EQ(use<Ours>(served.url("ours"), mode), use<Standard>(theirs, mode));
      EXPECT_EQ(std::filesystem::exists(ours), std::filesystem::exists(theirs));
      EXPECT_EQ(content_of(ours), content_of(theirs));
    }
  }
}

TEST(StoreFstream, DoesInEveryModeWhatStdDoes) {
  const served_directory served;
  compare_modes<ucx::fstream, std::fstream>(served);
  compare_modes<ucx::ifstream, std::ifstream>(served);
  compare_modes<ucx::ofstream, std::ofstream>(served);
}

// ---- Any order of calls

/// Calls of a streambuf, whatever its mode; the same seed gives the same ones. Where it has both
/// directions there is the seek between them that a file needs.
class buffer_calls {
 public:
  buffer_calls(std::uint64_t seed, ios::openmode mode, std::streamoff size)
      : random_(seed), mode_(mode), size_((mode & ios::trunc) != 0 ? 0 : size) {}

  /// Makes one, and returns what can be seen of it.
  std::string next(std::streambuf& buffer) {
    std::ostringstream seen;
    const std::uint64_t kind = below(20);
    const auto length = static_cast<std::streamsize>(below(below(3) == 0 ? 3000 : 8));
    std::string bytes(static_cast<std::size_t>(length), static_cast<char>('A' + below(26)));
    const std::streamoff offset = static_cast<std::streamoff>(below(200)) - 60;
    const ios::seekdir base = std::array{ios::beg, ios::cur, ios::end}[below(3)];
    seen << kind << ' ' << length << ' ' << offset << ' ' << base << ": ";
    if (kind < 7) {
      turn_to(buffer, kind_of::reading);
      read(buffer, kind, bytes, seen);
    } else if (kind < 11) {
      turn_to(buffer, kind_of::writing);
      write(buffer, kind, bytes, seen);
    } else if (kind < 13) {
      seen << "seekoff " << buffer.pubseekoff(offset, base);
      last_ = kind_of::neither;
    } else if (kind < 15) {
      seen << "seekpos " << buffer.pubseekpos(std::streamoff(below(5000)));
      last_ = kind_of::neither;
    } else if (kind < 16) {
      seen << "sync " << buffer.pubsync();
    } else if (kind < 17 && !reads(mode_)) {
      seen << "in_avail " << buffer.in_avail();  // else it depends on the size of a buffer
    }
    seen << " at " << buffer.pubseekoff(0, ios::cur);
    return seen.str();
  }

 private:
  enum class kind_of { neither, reading, writing };

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  void turn_to(std::streambuf& buffer, kind_of wanted) {
    const bool turns = last_ != kind_of::neither && last_ != wanted;
    if (turns && reads(mode_) && writes(mode_)) buffer.pubseekpos(buffer.pubseekoff(0, ios::cur));
    last_ = wanted;
  }

  void read(std::streambuf& buffer, std::uint64_t kind, std::string& bytes,
            std::ostringstream& seen) {
    switch (kind) {
      case 0:
        seen << "sbumpc " << buffer.sbumpc();
        break;
      case 1:
        seen << "sgetc " << buffer.sgetc();
        break;
      case 2:
        seen << "snextc " << buffer.snextc();
        break;
      case 3:
        // Behind the end libstdc++'s files go back all the same.
        if (reads(mode_) && buffer.pubseekoff(0, ios::cur) > size_) break;
        // What it returns besides the end is anything: libstdc++'s files say 0 at times.
        seen << "sungetc " << (buffer.sungetc() != std::char_traits<char>::eof());
        break;
      default:
        seen << "sgetn " << buffer.sgetn(bytes.data(), std::streamsize(bytes.size())) << bytes;
    }
  }

  void write(std::streambuf& buffer, std::uint64_t kind, const std::string& bytes,
             std::ostringstream& seen) {
    if (kind == 7) {
      seen << "sputc " << buffer.sputc('q');
    } else {
      seen << "sputn " << buffer.sputn(bytes.data(), std::streamsize(bytes.size()));
    }
    // libstdc++ tells a wrong place of what is still to be appended.
    if ((mode_ & ios::app) != 0) seen << " sync " << buffer.pubsync();
    if (writes(mode_)) size_ = std::max<std::streamoff>(size_, buffer.pubseekoff(0, ios::cur));
  }

  std::mt19937_64 random_;
  const ios::openmode mode_;
  std::streamoff size_;
  kind_of last_ = kind_of::neither;
};

/// The mode, and the size of a buffer of ours.
class ModeOracle : public testing::TestWithParam<std::tuple<ios::openmode, std::size_t>> {};

TEST_P(ModeOracle, AgreesWhateverIsCalled) {
  const auto [mode, buffer_size] = GetParam();
  const served_directory served;
  constexpr std::size_t size = 5000;
  for (std::uint64_t seed = 1; seed <= effort<std::uint64_t>(8, 2); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::string text = sample_text(size, seed);
    served.directory.make("ours", text);
    served.directory.make("std", text);
    ucx::filebuf ours;
    std::filebuf theirs;
    ASSERT_NE(ours.open(served.url("ours"), mode, {.buffer_size = buffer_size}), nullptr)
        << ours.error_message();
    ASSERT_NE(theirs.open(served.directory / "std", mode), nullptr);
    buffer_calls our_calls(seed, mode, size);
    buffer_calls std_calls(seed, mode, size);
    const int calls = effort(buffer_size < 100 ? 60 : 200, 50);
    for (int call = 0; call < calls; ++call) {
      const std::string expected = std_calls.next(theirs);
      ASSERT_EQ(our_calls.next(ours), expected) << "call " << call;
    }
    EXPECT_NE(ours.close(), nullptr) << ours.error_message();
    EXPECT_NE(theirs.close(), nullptr);
    ASSERT_TRUE(content_of(served.directory / "ours") == content_of(served.directory / "std"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, ModeOracle,
    testing::Combine(testing::Values(ios::openmode(ios::in), ios::in | ios::ate,
                                     ios::openmode(ios::out), ios::out | ios::trunc,
                                     ios::openmode(ios::app), ios::out | ios::app,
                                     ios::out | ios::app | ios::ate, ios::in | ios::app,
                                     ios::in | ios::out | ios::app, ios::in | ios::out,
                                     ios::in | ios::out | ios::trunc),
                     testing::Values<std::size_t>(5, 4096, stream_options().buffer_size)),
    [](const auto& instance) {
      return shown(std::get<0>(instance.param)) + std::to_string(std::get<1>(instance.param));
    });

}  // namespace
}  // namespace ucx::test
