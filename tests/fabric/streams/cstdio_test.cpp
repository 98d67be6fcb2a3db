// FILE of C over URLs: the same calls made to one of ours and to one of the system's.
#include "ucx/cstdio.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "support/basics/effort.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using testing::HasSubstr;

/// One store; what a test calls `ours` is in it, by URL, and what it calls `theirs` beside it.
class CFile : public testing::Test {
 protected:
  std::string ours(const std::string& name = "ours") const { return served_.url() + '/' + name; }
  std::string theirs(const std::string& name = "theirs") const { return (beside_ / name).string(); }
  std::string content(const std::string& name = "ours") const {
    return content_of(directory_ / name);
  }

  const temporary_directory directory_;
  const temporary_directory beside_;
  ucx_server served_;
  publication store_ = served_.publish_store(directory_ / "", {.writable = true});
};

TEST_F(CFile, ReadsWhatTheCLibraryReads) {
  directory_.make("ours", "12 apples\nand more\nlast");
  std::FILE* const in = open_file(ours(), "r");
  ASSERT_NE(in, nullptr) << std::strerror(errno);
  int count = 0;
  std::array<char, 16> word{};
  EXPECT_EQ(std::fscanf(in, "%d %15s", &count, word.data()), 2);
  EXPECT_EQ(count, 12);
  EXPECT_STREQ(word.data(), "apples");
  EXPECT_EQ(std::fgetc(in), '\n');
  std::array<char, 64> line{};
  EXPECT_STREQ(std::fgets(line.data(), line.size(), in), "and more\n");
  EXPECT_EQ(std::ungetc('m', in), 'm');
  EXPECT_EQ(std::fread(line.data(), 1, line.size(), in), 5U);
  EXPECT_TRUE(std::feof(in));
  EXPECT_FALSE(std::ferror(in));
  EXPECT_EQ(::fileno(in), -1);
  EXPECT_EQ(std::fclose(in), 0);
}

TEST_F(CFile, AppearsWhenItIsClosed) {
  std::FILE* const out = open_file(ours(), "w");
  ASSERT_NE(out, nullptr) << std::strerror(errno);
  for (int i = 0; i < 300'000; ++i) std::fprintf(out, "%d\n", i);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "ours"));
  EXPECT_EQ(std::fclose(out), 0);
  std::ifstream back(directory_ / "ours");
  int expected = 0;
  for (int number = 0; back >> number; ++expected) ASSERT_EQ(number, expected);
  EXPECT_EQ(expected, 300'000);
}

TEST_F(CFile, IsOneOfTheSystemsForALocalPath) {
  std::FILE* const out = open_file(theirs(), "w");
  ASSERT_NE(out, nullptr);
  EXPECT_GE(::fileno(out), 0);
  std::fputs("local", out);
  EXPECT_FALSE(file_error(out));
  EXPECT_EQ(file_error_message(out), "");
  EXPECT_EQ(std::fclose(out), 0);
  EXPECT_EQ(content_of(theirs()), "local");
  EXPECT_EQ(open_file(theirs("missing"), "r"), nullptr);
  EXPECT_EQ(errno, ENOENT);
}

// What fflush returns for is visible, also where the C library's buffer was full, or empty.
TEST_F(CFile, FlushMakesVisible) {
  std::string memory(300'000, '.');
  const publication fixed =
      served_.publish("memory", std::as_writable_bytes(std::span(memory)), access::read_write);
  for (const std::size_t length : {1U, 4096U, 8192U, 8193U, 65536U, 131072U, 300'000U}) {
    for (const char* const mode : {"r+", "w"}) {
      std::fill(memory.begin(), memory.end(), '.');
      std::FILE* const out = open_file(served_.url("memory"), mode);
      ASSERT_NE(out, nullptr) << std::strerror(errno);
      const std::string text(length, 'x');
      for (std::size_t i = 0; i < length; i += 4096) {
        std::fwrite(text.data(), 1, std::min<std::size_t>(4096, length - i), out);
      }
      EXPECT_EQ(std::fflush(out), 0);
      EXPECT_EQ(memory.substr(0, length), text);
      EXPECT_EQ(std::count(memory.begin(), memory.end(), 'x'), static_cast<std::ptrdiff_t>(length));
      EXPECT_EQ(std::fclose(out), 0);
    }
  }
}

TEST_F(CFile, ReachesBeyondFourGigabytes) {
  constexpr off_t far = off_t{5} << 30;
  std::FILE* const both = open_file(ours(), "w+");
  ASSERT_NE(both, nullptr);
  ASSERT_EQ(::fseeko(both, far, SEEK_SET), 0);
  EXPECT_EQ(std::fputs("far", both), 1);
  EXPECT_EQ(::ftello(both), far + 3);
  ASSERT_EQ(::fseeko(both, -2, SEEK_END), 0);
  EXPECT_EQ(std::fgetc(both), 'a');
  EXPECT_EQ(::ftello(both), far + 2);
  EXPECT_EQ(std::fclose(both), 0);
  EXPECT_EQ(std::filesystem::file_size(directory_ / "ours"), static_cast<std::uintmax_t>(far) + 3);
}

// ---- Beside a file of the system's

/// Makes a call to both files, and compares what it gives.
class twin_files {
 public:
  twin_files(std::FILE* ours, std::FILE* theirs) : files_{ours, theirs} {}
  ~twin_files() {
    for (std::FILE* const each : files_) {
      if (each != nullptr) std::fclose(each);
    }
  }
  twin_files(const twin_files&) = delete;
  twin_files& operator=(const twin_files&) = delete;

  template <class Call>
  void same(const char* what, Call&& call) {
    const auto ours = call(files_[0]);
    const auto theirs = call(files_[1]);
    EXPECT_EQ(ours, theirs) << what;
  }
  void same_state() {
    same("feof", [](std::FILE* file) { return std::feof(file) != 0; });
    same("ferror", [](std::FILE* file) { return std::ferror(file) != 0; });
    same("ftello", [](std::FILE* file) { return ::ftello(file); });
  }
  void close() {
    same("fclose", [](std::FILE*& file) { return std::fclose(std::exchange(file, nullptr)); });
  }
  /// What differs is what a seek may undo: none may be pushed back, and C wants one between reading
  /// and writing.
  void seek(off_t offset, int whence) {
    same("fseeko", [&](std::FILE* file) { return ::fseeko(file, offset, whence); });
  }

 private:
  std::array<std::FILE*, 2> files_;
};

using random_engine = std::mt19937;

void read_something(twin_files& twins, random_engine& random) {
  switch (random() % 6) {
    case 0:
      twins.same("fgetc", [](std::FILE* file) { return std::fgetc(file); });
      break;
    case 1: {
      const std::size_t size = random() % 3 == 0 ? random() % 20'000 : random() % 40;
      twins.same("fread", [size](std::FILE* file) {
        std::string into(size, '\0');
        into.resize(std::fread(into.data(), 1, size, file));
        return into;
      });
      break;
    }
    case 2:
      twins.same("fgets", [](std::FILE* file) {
        std::array<char, 50> line{};
        return std::string(std::fgets(line.data(), line.size(), file) == nullptr ? "none"
                                                                                 : line.data());
      });
      break;
    case 3:
      twins.same("fscanf", [](std::FILE* file) {
        int number = -1;
        const int found = std::fscanf(file, "%d", &number);
        return std::pair(found, number);
      });
      break;
    case 4:
      twins.same("ungetc", [](std::FILE* file) {
        const int c = std::fgetc(file);
        return std::pair(c, c == EOF ? EOF : std::ungetc('Q', file));
      });
      break;
    default:
      twins.same("rest", [](std::FILE* file) {
        std::string all;
        for (int c = std::fgetc(file); c != EOF && all.size() < 3000; c = std::fgetc(file)) {
          all.push_back(static_cast<char>(c));
        }
        return all;
      });
  }
}

void write_something(twin_files& twins, random_engine& random) {
  switch (random() % 4) {
    case 0:
      twins.same("fputc", [](std::FILE* file) { return std::fputc('c', file); });
      break;
    case 1: {
      const std::string text(random() % 3 == 0 ? random() % 20'000 : random() % 40,
                             static_cast<char>('a' + random() % 26));
      twins.same("fwrite",
                 [&](std::FILE* file) { return std::fwrite(text.data(), 1, text.size(), file); });
      break;
    }
    case 2: {
      const auto number = static_cast<int>(random() % 100'000);
      twins.same("fprintf", [&](std::FILE* file) { return std::fprintf(file, " %d\n", number); });
      break;
    }
    default:
      twins.same("fflush", [](std::FILE* file) { return std::fflush(file); });
  }
}

void play(twin_files& twins, const std::string& mode, random_engine& random) {
  const bool reads = mode != "w" && mode != "a";
  const bool writes = mode != "r";
  bool writing = !reads;
  for (int step = 0; step < 60 && !testing::Test::HasFailure(); ++step) {
    if (reads && writes && random() % 4 == 0) {
      writing = !writing;
      twins.seek(0, random() % 2 == 0 ? SEEK_CUR : SEEK_END);
    }
    if (random() % 5 == 0) {
      twins.seek(static_cast<off_t>(random() % 30'000), SEEK_SET);
    } else if (writing) {
      write_something(twins, random);
    } else {
      read_something(twins, random);
    }
    if (random() % 16 == 0) {
      twins.same("rewind", [](std::FILE* file) { return std::rewind(file), 0; });
    }
    twins.same_state();
  }
  twins.close();
}

/// Sets the C library's buffer: 0 none, 1 lines, 2 an odd one of 5 bytes, else as it is.
void set_buffer(twin_files& twins, unsigned kind, std::array<char, 10>& area) {
  char* at = area.data();
  twins.same("setvbuf", [&](std::FILE* file) {
    if (kind == 0) return std::setvbuf(file, nullptr, _IONBF, 0);
    if (kind == 1) return std::setvbuf(file, nullptr, _IOLBF, 0);
    if (kind > 2) return 0;
    return std::setvbuf(file, std::exchange(at, at + 5), _IOFBF, 5);
  });
}

TEST_F(CFile, DoesWhatAFileOfTheSystemsDoes) {
  std::string before;
  for (int i = 0; i < 3000; ++i) before += std::to_string(i) + (i % 7 == 0 ? '\n' : ' ');
  for (unsigned seed = 1; seed <= effort(10U, 5U); ++seed) {  // five kinds of buffer
    for (const std::string mode : {"r", "r+", "w", "w+", "a", "a+", "rb", "rb+", "w+b", "ab"}) {
      SCOPED_TRACE(mode + " " + std::to_string(seed));
      random_engine random(seed);
      directory_.make("ours", before);
      beside_.make("theirs", before);
      std::array<char, 10> area{};  // goes after the files
      twin_files twins(open_file(ours(), mode.c_str()), std::fopen(theirs().c_str(), mode.c_str()));
      set_buffer(twins, seed % 5, area);
      std::string plain = mode;
      std::erase(plain, 'b');
      play(twins, plain, random);
      ASSERT_EQ(content(), content_of(theirs()));
      if (HasFailure()) return;
    }
  }
}

// ---- Modes and errors

TEST_F(CFile, OpensAsTheModeSays) {
  struct attempt {
    const char* mode;
    bool there;
    int failure;  // 0: none
  };
  for (const attempt& each : std::initializer_list<attempt>{{"r", false, ENOENT},
                                                            {"r+", false, ENOENT},
                                                            {"w", false, 0},
                                                            {"a+b", false, 0},
                                                            {"wx", false, 0},
                                                            {"w+x", false, 0},
                                                            {"wbx", true, EEXIST},
                                                            {"rx", true, 0},
                                                            {"re", true, 0},
                                                            {"", true, EINVAL},
                                                            {"+r", true, EINVAL},
                                                            {"x", true, EINVAL},
                                                            {"ax", true, EINVAL}}) {
    std::filesystem::remove(directory_ / "ours");
    if (each.there) directory_.make("ours", "there");
    std::FILE* const opened = open_file(ours(), each.mode);
    const int failure = errno;
    EXPECT_EQ(opened == nullptr, each.failure != 0) << each.mode;
    if (opened == nullptr) {
      EXPECT_EQ(failure, each.failure) << each.mode;
    } else {
      EXPECT_EQ(std::fclose(opened), 0) << each.mode;
    }
  }
  EXPECT_EQ(open_file(ours(), nullptr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(open_file(ours(), "r,ccs=UTF-8"), nullptr);
  EXPECT_EQ(errno, ENOTSUP);
}

TEST_F(CFile, TellsWhyItCannotBeOpened) {
  std::error_code ec;
  EXPECT_EQ(open_file("ucx:", "r", {}, ec), nullptr);
  EXPECT_EQ(ec, errc::bad_url);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(open_file("ucx://127.0.0.1:1/nobody", "r", {}, ec), nullptr);
  EXPECT_EQ(errno, ECONNREFUSED);
  EXPECT_EQ(open_file(ours(), "r", {}, ec), nullptr);
  EXPECT_EQ(ec, errc::no_such_name);
  const std::FILE* const writing = open_file(ours(), "w", {}, ec);
  ASSERT_NE(writing, nullptr);
  EXPECT_FALSE(ec);
  EXPECT_EQ(open_file(ours(), "w", {}, ec), nullptr);
  EXPECT_EQ(ec, errc::busy);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(std::fclose(const_cast<std::FILE*>(writing)), 0);
  const std::string memory(10, 'x');
  const publication fixed = served_.publish("memory", std::as_bytes(std::span(memory)));
  EXPECT_EQ(open_file(served_.url("memory"), "r+", {}, ec), nullptr);
  EXPECT_EQ(errno, EACCES);
  EXPECT_EQ(open_file(served_.url("memory"), "w+", {}, ec), nullptr);
  EXPECT_EQ(errno, ENOTSUP);
  client asking(served_.url());
  EXPECT_EQ(open_file(asking, "missing", "r"), nullptr);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(open_file(asking, "missing", "r", {}, ec), nullptr);
  EXPECT_EQ(ec, errc::no_such_name);
}

TEST_F(CFile, EndsWhereAFixedRegionDoes) {
  std::string memory(10, '.');
  const publication fixed =
      served_.publish("memory", std::as_writable_bytes(std::span(memory)), access::read_write);
  client through(served_.url());
  std::FILE* const out = open_file(through, "memory", "r+");
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(std::fwrite("0123456789ab", 1, 12, out), 12U);
  EXPECT_EQ(std::fflush(out), EOF);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_TRUE(std::ferror(out));
  EXPECT_EQ(file_error(out), errc::no_space);
  EXPECT_THAT(file_error_message(out), HasSubstr("/memory"));
  EXPECT_EQ(memory, "0123456789");
  std::fclose(out);
}

TEST_F(CFile, SaysWhatWasLost) {
  std::string memory(std::size_t{1} << 20U, '.');
  publication fixed =
      served_.publish("memory", std::as_writable_bytes(std::span(memory)), access::read_write);
  std::FILE* const in = open_file(served_.url("memory"), "r");
  std::FILE* const out = open_file(served_.url("memory"), "r+");
  std::FILE* const fresh = open_file(ours(), "w");
  ASSERT_TRUE(in != nullptr && out != nullptr && fresh != nullptr);
  EXPECT_EQ(std::fgetc(in), '.');
  std::fputs("something", fresh);
  served_.close();
  std::array<char, 100> into{};
  ASSERT_EQ(::fseeko(in, -50, SEEK_END), 0);
  EXPECT_EQ(std::fread(into.data(), 1, into.size(), in), 0U);
  EXPECT_FALSE(std::feof(in));
  EXPECT_TRUE(std::ferror(in));
  EXPECT_TRUE(errno == ECONNRESET || errno == ESTALE) << errno;
  EXPECT_TRUE(file_error(in));
  std::fputs("something", out);
  EXPECT_EQ(std::fclose(out), EOF);
  EXPECT_EQ(std::fclose(fresh), EOF);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "ours"));
  EXPECT_EQ(std::fclose(in), 0);
}

TEST_F(CFile, LeavesAloneWhatItHasNoMemoryToWrite) {
  directory_.make("ours", "what was there");
  std::error_code ec;
  stream_options endless;
  endless.buffer_size = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(open_file(ours(), "w", endless, ec), nullptr);
  EXPECT_EQ(ec, errc::no_memory);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(content(), "what was there");
  EXPECT_EQ(open_file(ours("new"), "wx", endless), nullptr);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "new"));
  std::FILE* const out = open_file(ours(), "w");
  ASSERT_NE(out, nullptr) << "nobody has it open";
  EXPECT_EQ(std::fclose(out), 0);
  EXPECT_EQ(content(), "");
}

TEST_F(CFile, IsNothingToAForkedChild) {
  std::FILE* const out = open_file(ours(), "w");
  ASSERT_NE(out, nullptr);
  std::fputs("parent", out);
  ASSERT_EQ(std::fflush(out), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::fputs("child", out);
    const bool refused = std::fflush(out) == EOF && errno == ENOTSUP;
    ::_exit(refused && std::fclose(out) == EOF ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(std::fclose(out), 0);
  EXPECT_EQ(content(), "parent");
}

}  // namespace
}  // namespace ucx::test
