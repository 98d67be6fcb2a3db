// ucx::fstream over a local path and std::fstream are given the same calls, in random order and in
// every openmode.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/basics/effort.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/streams/stream_script.hpp"
#include "ucx/fstream.hpp"

namespace ucx::test {
namespace {

using std::ios;

// ---- The same behaviour, whatever is done in whatever order

/// A file and the two ways to it. The buffers are given, and zeroed, because libstdc++ shows what
/// was in them before in some odd cases; a size of -1 leaves the matter to the class.
template <class Ours, class Standard>
struct twins {
  twins(const temporary_directory& directory, const std::string& content,
        std::streamsize buffer_size)
      : our_path(directory.make("ours", content)), std_path(directory.make("std", content)) {
    if (buffer_size < 0) return;
    our_memory.resize(static_cast<std::size_t>(buffer_size));
    std_memory = our_memory;
    if (buffer_size == 0) {
      set_buffers(nullptr, nullptr, 0);
    } else {
      set_buffers(our_memory.data(), std_memory.data(), buffer_size);
    }
  }
  void set_buffers(char* our_buffer, char* std_buffer, std::streamsize size) {
    EXPECT_NE(buffer_of(ours)->pubsetbuf(our_buffer, size), nullptr);
    EXPECT_NE(buffer_of(standard)->pubsetbuf(std_buffer, size), nullptr);
  }
  static std::streambuf* buffer_of(std::streambuf& buffer) { return &buffer; }
  static std::streambuf* buffer_of(std::ios& stream) { return stream.rdbuf(); }

  std::filesystem::path our_path;
  std::filesystem::path std_path;
  std::vector<char> our_memory;
  std::vector<char> std_memory;
  Ours ours;
  Standard standard;
};

using twin_streams = twins<ucx::fstream, std::fstream>;
using twin_buffers = twins<ucx::filebuf, std::filebuf>;

class LocalFstreamOracle : public testing::TestWithParam<int> {};

TEST_P(LocalFstreamOracle, AgreesWhileItIsMovedAndSwapped) {
  const temporary_directory directory;
  for (const std::size_t size : {0U, 1U, 4095U, 4096U, 30'000U}) {
    for (std::uint64_t seed = 1; seed <= effort<std::uint64_t>(6, 2); ++seed) {
      SCOPED_TRACE("size " + std::to_string(size) + ", seed " + std::to_string(seed));
      const std::string text = sample_text(size, seed);
      twin_streams twin(directory, text, GetParam());
      constexpr auto mode = ios::in | ios::out | ios::binary;
      twin.ours.open(twin.our_path, mode);
      twin.standard.open(twin.std_path, mode);
      stream_script script(seed, text, 9000);
      ASSERT_TRUE(script.play(twin.ours, twin.standard, 200));
      ucx::fstream moved(std::move(twin.ours));
      std::fstream moved_oracle(std::move(twin.standard));
      EXPECT_FALSE(twin.ours.is_open());
      ASSERT_TRUE(script.play(moved, moved_oracle, 200));
      ucx::fstream other;
      std::fstream other_oracle;
      swap(other, moved);
      swap(other_oracle, moved_oracle);
      ASSERT_TRUE(script.play(other, other_oracle, 100));
      moved = std::move(other);
      moved_oracle = std::move(other_oracle);
      ASSERT_TRUE(script.play(moved, moved_oracle, 100));
      moved.close();
      moved_oracle.close();
      EXPECT_EQ(moved.rdstate(), moved_oracle.rdstate());
      EXPECT_TRUE(content_of(twin.our_path) == script.content());
    }
  }
}

/// Calls of a streambuf in an order that no program has, switches without a seek included; returns
/// everything that can be seen.
std::string call_at_random(std::streambuf& buffer, std::mt19937_64& random) {
  std::ostringstream seen;
  const auto below = [&random](std::uint64_t limit) { return random() % limit; };
  const std::uint64_t kind = below(18);
  const auto length = static_cast<std::streamsize>(below(below(3) == 0 ? 3000 : 8));
  seen << kind << ' ' << length << ": ";
  std::string bytes(static_cast<std::size_t>(length), static_cast<char>('A' + below(26)));
  constexpr std::array bases{ios::beg, ios::cur, ios::end};
  const auto base = bases[below(3)];
  const auto offset = static_cast<std::streamoff>(below(200)) - 60;
  try {
    switch (kind) {
      case 0:
      case 1:
        seen << buffer.sbumpc();
        break;
      case 2:
        seen << buffer.sgetc();
        break;
      case 3:
        seen << buffer.snextc();
        break;
      case 4:
      case 5:
      case 6:
        seen << buffer.sgetn(bytes.data(), length) << ' ' << bytes;
        break;
      case 7:
        seen << buffer.sungetc();
        break;
      case 8:
        seen << buffer.sputbackc(bytes.empty() ? 'z' : bytes.front());
        break;
      case 9:
      case 10:
        seen << buffer.sputc('q');
        break;
      case 11:
      case 12:
        seen << buffer.sputn(bytes.data(), length);
        break;
      case 13:
        seen << buffer.pubseekoff(offset, base);
        break;
      case 14:
        seen << buffer.pubseekpos(std::streampos(static_cast<std::streamoff>(below(5000))));
        break;
      case 15:
        seen << buffer.pubseekoff(0, ios::cur);
        break;
      case 16:
        seen << buffer.pubsync();
        break;
      default:
        seen << buffer.in_avail();
    }
  } catch (const std::exception& failure) {
    seen << "throws " << failure.what();
  }
  return seen.str();
}

using LocalFilebufOracle = LocalFstreamOracle;

TEST_P(LocalFilebufOracle, AgreesWhateverIsCalledInWhateverOrder) {
  const temporary_directory directory;
  for (const ios::openmode mode : {ios::in | ios::out, ios::in, ios::out | ios::app,
                                   ios::in | ios::out | ios::app, ios::in | ios::out | ios::ate}) {
    for (std::uint64_t seed = 1; seed <= effort<std::uint64_t>(30); ++seed) {
      SCOPED_TRACE("mode " + std::to_string(mode) + ", seed " + std::to_string(seed));
      twin_buffers twin(directory, sample_text(5000, seed), GetParam());
      ASSERT_EQ(twin.ours.open(twin.our_path, mode), &twin.ours);
      ASSERT_EQ(twin.standard.open(twin.std_path, mode), &twin.standard);
      std::mt19937_64 our_random(seed);
      std::mt19937_64 std_random(seed);
      for (int call = 0; call < 300; ++call) {
        const std::string expected = call_at_random(twin.standard, std_random);
        ASSERT_EQ(call_at_random(twin.ours, our_random), expected) << "call " << call;
      }
      EXPECT_EQ(twin.ours.close() == nullptr, twin.standard.close() == nullptr);
      ASSERT_TRUE(content_of(twin.our_path) == content_of(twin.std_path));
    }
  }
}

std::string name_of(const testing::TestParamInfo<int>& instance) {
  return instance.param < 0 ? std::string("Default") : std::to_string(instance.param);
}

INSTANTIATE_TEST_SUITE_P(Buffer, LocalFstreamOracle, testing::Values(-1, 0, 1, 2, 5, 4096, 100'000),
                         name_of);
// With buffers of known content only.
INSTANTIATE_TEST_SUITE_P(Buffer, LocalFilebufOracle, testing::Values(0, 1, 2, 5, 4096, 100'000),
                         name_of);

// ---- Every openmode

std::string shown(ios::openmode mode) {
  std::string text;
  const std::pair<ios::openmode, const char*> names[] = {
      {ios::in, " in"},   {ios::out, " out"}, {ios::trunc, " trunc"},
      {ios::app, " app"}, {ios::ate, " ate"}, {ios::binary, " binary"}};
  for (const auto& [bit, name] : names) {
    if ((mode & bit) != 0) text += name;
  }
  return text;
}

/// Opens, reads and writes, and returns what came of it.
template <class Stream>
std::string use(const std::filesystem::path& path, ios::openmode mode) {
  Stream stream(path, mode);
  std::ostringstream seen;
  seen << stream.is_open() << ' ' << stream.rdstate() << ' ';
  if (!stream.is_open()) return seen.str();
  std::streambuf& buffer = *static_cast<std::ios&>(stream).rdbuf();
  seen << buffer.pubseekoff(0, ios::cur) << ' ' << buffer.sgetc() << ' ' << buffer.sputc('w') << ' '
       << buffer.pubseekoff(0, ios::cur);
  stream.close();
  seen << ' ' << stream.rdstate();
  return seen.str();
}

template <class Ours, class Standard>
void compare_modes(const temporary_directory& directory) {
  // The bit behind the last is noreplace of C++23.
  for (unsigned bits = 0; bits < 128; ++bits) {
    const auto mode = static_cast<ios::openmode>(bits);
    SCOPED_TRACE(std::to_string(bits) + shown(mode));
    directory.make("ours", "content");
    directory.make("std", "content");
    EXPECT_EQ(use<Ours>(directory / "ours", mode), use<Standard>(directory / "std", mode));
    EXPECT_EQ(content_of(directory / "ours"), content_of(directory / "std"));
    std::filesystem::remove(directory / "ours");
    std::filesystem::remove(directory / "std");
    EXPECT_EQ(use<Ours>(directory / "ours", mode), use<Standard>(directory / "std", mode));
    EXPECT_EQ(std::filesystem::exists(directory / "ours"),
              std::filesystem::exists(directory / "std"));
    EXPECT_EQ(content_of(directory / "ours"), content_of(directory / "std"));
  }
}

TEST(LocalFstream, OpensInEveryModeAsStdDoes) {
  const temporary_directory directory;
  compare_modes<ucx::fstream, std::fstream>(directory);
  compare_modes<ucx::ifstream, std::ifstream>(directory);
  compare_modes<ucx::ofstream, std::ofstream>(directory);
}

}  // namespace
}  // namespace ucx::test
