// Over a local path ucx::fstream is a std::fstream: each test does the same to both.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"

namespace ucx::test {
namespace {

using std::ios;

std::error_code from_errno(int value) { return {value, std::generic_category()}; }

// ---- The same constructors

template <class Ours, class Standard, class... Arguments>
constexpr bool constructed_alike =
    std::is_constructible_v<Ours, Arguments...> == std::is_constructible_v<Standard, Arguments...>;

template <class Ours, class Standard>
constexpr bool all_constructed_alike =
    constructed_alike<Ours, Standard>&& constructed_alike<Ours, Standard, const char*>&&
        constructed_alike<Ours, Standard, const char (&)[4]>&& constructed_alike<Ours, Standard,
                                                                                 std::string>&&
            constructed_alike<Ours, Standard, const std::string&, ios::openmode>&&
                constructed_alike<Ours, Standard, std::filesystem::path>&& constructed_alike<
                    Ours, Standard, const std::filesystem::path&, ios::openmode>&&
                    constructed_alike<Ours, Standard, std::string_view>&& constructed_alike<
                        Ours, Standard, const wchar_t*>&& constructed_alike<Ours, Standard, int>&&
                        constructed_alike<Ours, Standard, std::streambuf*>&&
                            std::is_move_constructible_v<Ours>&& std::is_move_assignable_v<Ours>&&
                                std::is_swappable_v<Ours> &&
    !std::is_copy_constructible_v<Ours> && !std::is_copy_assignable_v<Ours> &&
    !std::is_convertible_v<const char*, Ours> && !std::is_convertible_v<std::string, Ours>;

static_assert(all_constructed_alike<ucx::ifstream, std::ifstream>);
static_assert(all_constructed_alike<ucx::ofstream, std::ofstream>);
static_assert(all_constructed_alike<ucx::fstream, std::fstream>);

/// What std takes for a path: it can be made preferred, and has a name of the same kind.
struct path_of_others {
  std::string text;

  path_of_others& make_preferred() { return *this; }
  path_of_others filename() const { return *this; }
  const char* c_str() const { return text.c_str(); }
};

/// Has a text, and is no path.
struct no_path {
  const char* c_str() const { return "text"; }
};

template <class Ours, class Standard>
constexpr bool takes_the_same_paths =
    constructed_alike<Ours, Standard, path_of_others>&&
        constructed_alike<Ours, Standard, const path_of_others&, ios::openmode>&& constructed_alike<
            Ours, Standard, no_path>&& std::is_constructible_v<Ours, path_of_others> &&
    !std::is_constructible_v<Ours, no_path>;

static_assert(takes_the_same_paths<ucx::ifstream, std::ifstream>);
static_assert(takes_the_same_paths<ucx::ofstream, std::ofstream>);
static_assert(takes_the_same_paths<ucx::fstream, std::fstream>);
static_assert(std::is_same_v<decltype(std::declval<const ucx::fstream&>().rdbuf()), ucx::filebuf*>);
static_assert(std::is_base_of_v<std::istream, ucx::ifstream>);
static_assert(std::is_base_of_v<std::ostream, ucx::ofstream>);
static_assert(std::is_base_of_v<std::iostream, ucx::fstream>);

TEST(LocalFstream, OpensWhatEachKindOfNameSays) {
  const temporary_directory directory;
  const std::filesystem::path path = directory.make("file", "1 2");
  const std::string name = path.string();
  const auto first_of = [](ucx::ifstream stream) {
    int number = 0;
    stream >> number;
    return number;
  };
  EXPECT_EQ(first_of(ucx::ifstream(name.c_str())), 1);
  EXPECT_EQ(first_of(ucx::ifstream(name)), 1);
  EXPECT_EQ(first_of(ucx::ifstream(path)), 1);
  struct {
    std::string text;
    operator std::string() const { return text; }
  } const converts{name};
  EXPECT_EQ(first_of(ucx::ifstream(converts)), 1);
  EXPECT_EQ(first_of(ucx::ifstream({name.c_str(), name.size()})), 1) << "it makes a std::string";
  EXPECT_EQ(first_of(ucx::ifstream({name})), 1);
  const char* const text = name.c_str();
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wbraced-scalar-init"  // programs do it
#endif
  EXPECT_EQ(first_of(ucx::ifstream({text})), 1);
  EXPECT_EQ(first_of(ucx::ifstream({text}, ios::in)), 1);
#if defined(__clang__)
#pragma clang diagnostic pop
#endif
  ucx::ifstream in;
  in.open(name.c_str());
  in.close();
  in.open(name);
  in.close();
  in.open(path, ios::ate);
  EXPECT_TRUE(in.is_open());
  EXPECT_EQ(in.tellg(), std::streampos(3));
}

// ---- What programs rely on

template <class Stream>
std::string tail(const std::filesystem::path& log) {
  std::ofstream(log) << "one\n";
  Stream in(log);
  std::string seen;
  std::string line;
  for (const char* const next : {"two\nthr", "ee\n", "four\n"}) {
    while (std::getline(in, line)) seen += "[" + line + "]";
    seen += in.eof() ? " end " : " ??? ";
    in.clear();
    std::ofstream(log, ios::app) << next;
  }
  while (std::getline(in, line)) seen += "[" + line + "]";
  return seen;
}

TEST(LocalFstream, SeesWhatIsAppendedAfterTheEnd) {
  const temporary_directory directory;
  EXPECT_EQ(tail<ucx::ifstream>(directory / "ours"), "[one] end [two][thr] end [ee] end [four]");
  EXPECT_EQ(tail<std::ifstream>(directory / "std"), tail<ucx::ifstream>(directory / "ours"));
}

template <class Stream>
std::string read_pipe(const std::filesystem::path& pipe) {
  std::thread writer([&pipe] { std::ofstream(pipe) << "12 34\nthe rest" << std::flush; });
  std::string seen;
  Stream in(pipe);
  int a = 0;
  int b = 0;
  in >> a >> b;
  writer.join();
  std::string rest;
  seen += std::to_string(a + b) + " at " + std::to_string(in.tellg());
  in.clear();
  seen += " buffered " + std::to_string(in.rdbuf()->in_avail());
  in.ignore();
  std::getline(in, rest);
  return seen + ' ' + rest + (in.eof() ? " end" : "");
}

TEST(LocalFstream, ReadsPipes) {
  const temporary_directory directory;
  const std::filesystem::path pipe = directory / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string expected = read_pipe<std::ifstream>(pipe);
  EXPECT_EQ(read_pipe<ucx::ifstream>(pipe), expected);
  EXPECT_NE(expected.find("the rest end"), std::string::npos) << expected;
}

TEST(LocalFstream, ReadsFilesWhoseSizeTheSystemDoesNotTell) {
  std::ifstream standard("/proc/self/status");
  ucx::ifstream ours("/proc/self/status");
  std::string expected;
  std::string line;
  std::getline(standard, expected);
  std::getline(ours, line);
  EXPECT_EQ(line, expected);
  std::size_t lines = 1;
  while (std::getline(ours, line)) ++lines;
  EXPECT_GT(lines, 10U);
  EXPECT_TRUE(ours.eof());
}

/// Writes each character twice.
class doubling : public std::codecvt<char, char, std::mbstate_t> {
 protected:
  result do_out(std::mbstate_t&, const char* from, const char* from_end, const char*& from_next,
                char* to, char* to_end, char*& to_next) const override {
    for (from_next = from, to_next = to; from_next != from_end; ++from_next) {
      if (to_end - to_next < 2) return partial;
      *to_next++ = *from_next;
      *to_next++ = *from_next;
    }
    return ok;
  }
  result do_in(std::mbstate_t&, const char* from, const char* from_end, const char*& from_next,
               char* to, char* to_end, char*& to_next) const override {
    for (from_next = from, to_next = to; from_end - from_next >= 2 && to_next != to_end;) {
      if (from_next[0] != from_next[1]) return error;
      *to_next++ = *from_next;
      from_next += 2;
    }
    return from_next == from_end ? ok : partial;
  }
  result do_unshift(std::mbstate_t&, char* to, char*, char*& to_next) const override {
    to_next = to;
    return noconv;
  }
  int do_encoding() const noexcept override { return 2; }
  bool do_always_noconv() const noexcept override { return false; }
  int do_length(std::mbstate_t&, const char* from, const char* end,
                std::size_t most) const override {
    return static_cast<int>(std::min(most, static_cast<std::size_t>(end - from) / 2) * 2);
  }
  int do_max_length() const noexcept override { return 2; }
};

template <class Stream>
std::string convert(const std::filesystem::path& file) {
  const std::locale converting(std::locale::classic(), new doubling);
  std::ostringstream seen;
  Stream stream;
  stream.imbue(converting);
  stream.open(file, ios::in | ios::out | ios::trunc);
  stream << "some text, " << 42;
  seen << stream.tellp() << ' ';
  stream.seekg(5);
  std::string word;
  stream >> word;
  seen << word << ' ' << stream.tellg() << ' ';
  stream.unget();
  seen << static_cast<char>(stream.get());
  stream.seekp(0, ios::end);
  stream.imbue(std::locale::classic());
  stream << "plain";
  stream.close();
  seen << stream.rdstate() << ' ' << content_of(file) << ' ';
  stream.open(file.parent_path() / "broken", ios::in);
  stream.imbue(converting);
  stream >> word;
  seen << stream.rdstate() << (stream.getloc() == converting);
  return seen.str();
}

TEST(LocalFstream, Converts) {
  const temporary_directory directory;
  directory.make("broken", "aabbxy");
  const std::string expected = convert<std::fstream>(directory / "std");
  EXPECT_EQ(convert<ucx::fstream>(directory / "ours"), expected);
  EXPECT_NE(expected.find("ssoommee  tteexxtt"), std::string::npos) << expected;
}

TEST(LocalFstream, UsesTheBufferThatItIsGiven) {
  const temporary_directory directory;
  const std::filesystem::path file = directory / "file";
  std::array<char, 16> memory{};
  ucx::ofstream out;
  out.rdbuf()->pubsetbuf(memory.data(), memory.size());
  out.open(file);
  out << "in memory";
  EXPECT_EQ(std::string(memory.data()), "in memory");
  EXPECT_EQ(content_of(file), "");
  out.close();
  EXPECT_EQ(content_of(file), "in memory");

  ucx::ofstream unbuffered;
  unbuffered.rdbuf()->pubsetbuf(nullptr, 0);
  unbuffered.open(file);
  unbuffered << "at once";
  EXPECT_EQ(content_of(file), "at once");
}

TEST(LocalFstream, KeepsWhatIsBufferedWhenItMoves) {
  const temporary_directory directory;
  const std::filesystem::path file = directory / "file";
  ucx::ofstream out(file);
  out << "before";
  out.put(' ');
  std::vector<ucx::ofstream> streams;
  streams.push_back(std::move(out));
  streams.front() << "after";
  EXPECT_FALSE(out.is_open());
  streams.clear();
  EXPECT_EQ(content_of(file), "before after");

  ucx::ifstream in(file);
  char first = 0;
  in.get(first);
  ucx::ifstream other(directory.make("other", "xyz"));
  other.get();
  swap(in, other);
  EXPECT_EQ(in.get(), 'y');
  EXPECT_EQ(other.get(), 'e');
  in = std::move(other);
  EXPECT_EQ(in.get(), 'f');
  ucx::ifstream moved(std::move(in));
  EXPECT_EQ(moved.get(), 'o');
  in = std::move(moved);
  EXPECT_EQ(in.tellg(), std::streampos(4));
  EXPECT_FALSE(other.is_open());
  other.open(file);
  EXPECT_EQ(other.get(), 'b') << "a stream that was moved from opens again";
}

TEST(LocalFstream, ClosesAsStdDoes) {
  const temporary_directory directory;
  const std::filesystem::path file = directory.make("file", "text");
  const auto run = [&](auto in) {
    std::ostringstream seen;
    in.close();
    seen << in.rdstate() << ' ';
    in.clear();
    in.open(file);
    seen << in.is_open() << in.get() << ' ';
    in.open(file);
    seen << in.rdstate() << in.is_open() << ' ';
    in.clear();
    seen << in.get() << ' ';
    in.close();
    seen << in.rdstate() << in.is_open() << in.get() << in.rdstate();
    return seen.str();
  };
  EXPECT_EQ(run(ucx::ifstream()), run(std::ifstream()));
}

// ---- error(), which std does not have

TEST(LocalFstream, KeepsItsErrorWhileTheBufferServesAlone) {
  const temporary_directory directory;
  ucx::ifstream in(directory.make("file", "some text"));
  EXPECT_EQ(in.get(), 's');
  in.seekg(-1);
  EXPECT_TRUE(in.fail());
  const std::error_code why = in.error();
  EXPECT_TRUE(why);
  in.clear();
  in.get();
  EXPECT_TRUE(in.good());
  EXPECT_EQ(in.error(), why);
  in.seekg(0);
  EXPECT_FALSE(in.error());
}

TEST(LocalFstream, TellsWhyItCanNotOpen) {
  const temporary_directory directory;
  const std::string missing = (directory / "missing").string();
  ucx::ifstream in(missing);
  EXPECT_TRUE(in.fail());
  EXPECT_FALSE(in.bad());
  EXPECT_EQ(in.error(), from_errno(ENOENT));
  EXPECT_EQ(in.error_message(), missing + ": " + std::strerror(ENOENT));
  EXPECT_EQ(errno, ENOENT) << "as after a std::ifstream";
  in.close();
  EXPECT_EQ(in.error(), from_errno(ENOENT)) << "what comes later does not hide it";

  errno = EDOM;
  in.open(directory.make("there", ""));
  EXPECT_EQ(errno, EDOM) << "success leaves errno alone";
  EXPECT_TRUE(in.good());
  EXPECT_FALSE(in.error());
  EXPECT_EQ(in.error_message(), "");
  in.open(missing);
  EXPECT_EQ(in.error(), errc::invalid_argument) << "it is open";

  ucx::ofstream nothing(missing, ios::trunc | ios::app);
  EXPECT_EQ(nothing.error(), errc::invalid_argument);
  const ucx::ifstream null(static_cast<const char*>(nullptr));
  EXPECT_EQ(null.error(), from_errno(ENOENT));
  EXPECT_FALSE(ucx::fstream().error());
}

TEST(LocalFstream, LeavesInErrnoWhyItCanNotOpen) {
  const temporary_directory directory;
  const std::string file = directory.make("file", "text").string();
  const auto errno_of = [](auto stream, const std::string& name, ios::openmode mode) {
    errno = 0;
    stream.open(name, mode);
    return stream.is_open() ? 0 : errno;
  };
  for (const std::string& name : std::vector<std::string>{
           file + "/below", (directory / "missing").string(), (directory / "").string()}) {
    EXPECT_EQ(errno_of(ucx::fstream(), name, ios::out | ios::in),
              errno_of(std::fstream(), name, ios::out | ios::in))
        << name;
  }
  // Of these std says nothing.
  EXPECT_EQ(errno_of(ucx::fstream(), file, ios::trunc | ios::app), EINVAL);
  ucx::ifstream in(file);
  errno = 0;
  in.open(file);
  EXPECT_TRUE(in.fail());
  EXPECT_EQ(errno, EINVAL) << "something is open already";
}

TEST(LocalFstream, OpensAPathOfAnotherLibrary) {
  const temporary_directory directory;
  const path_of_others path{directory.make("file", "text").string()};
  ucx::ifstream in(path);
  EXPECT_EQ(in.get(), 't');
  ucx::fstream both;
  both.open(path);
  EXPECT_TRUE(both.is_open());
  ucx::filebuf buffer;
  EXPECT_NE(buffer.open(path, ios::in), nullptr);
}

TEST(LocalFstream, ThrowsWhatStdThrows) {
  const temporary_directory directory;
  const auto text_of = [&](auto in) {
    in.exceptions(ios::failbit | ios::badbit);
    std::string text;
    try {
      in.open(directory / "missing");
    } catch (const std::ios_base::failure& failure) {
      text = failure.what();
    }
    try {
      in.clear();
      in.open(std::filesystem::temp_directory_path());
      in.get();
    } catch (const std::ios_base::failure& failure) {
      text = text + " and " + failure.what();
    }
    return text;
  };
  EXPECT_EQ(text_of(ucx::ifstream()), text_of(std::ifstream()));
  EXPECT_NE(text_of(ucx::ifstream()).find("directory"), std::string::npos);
}

TEST(LocalFstream, TellsWhyItCanNotReadOrWrite) {
  ucx::ifstream in(std::filesystem::temp_directory_path());
  in.get();
  EXPECT_TRUE(in.bad());
  EXPECT_EQ(in.error(), std::errc::is_a_directory);
  in.close();
  in.clear();
  in.get();
  EXPECT_EQ(in.error(), errc::closed);

  ucx::ofstream full("/dev/full");
  full << "text" << std::flush;
  EXPECT_TRUE(full.bad());
  EXPECT_EQ(full.error(), std::errc::no_space_on_device);
  EXPECT_EQ(full.error_message(), std::string("/dev/full: ") + std::strerror(ENOSPC));
  full.close();
  EXPECT_TRUE(full.fail());
  EXPECT_EQ(full.error(), std::errc::no_space_on_device);
}

TEST(LocalFstream, TakesAFileWhoseNameBeginsLikeAUrl) {
  const temporary_directory directory;
  const std::filesystem::path file = directory.make("ucx:file", "text");
  ucx::ifstream in(file);
  std::string word;
  in >> word;
  EXPECT_EQ(word, "text");
}

}  // namespace
}  // namespace ucx::test
