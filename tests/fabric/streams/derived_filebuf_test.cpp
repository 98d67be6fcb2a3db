// Classes that are derived from ucx::filebuf, and have functions and areas of their own, are asked
// as those are that are derived from std::filebuf.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ios>
#include <istream>
#include <iterator>
#include <optional>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/files/temporary_directory.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/fstream.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using std::ios;

/// Notes what it is asked, and leaves it to its base.
template <class Base>
class noting : public Base {
 public:
  using int_type = typename Base::int_type;
  std::string asked;

 protected:
  int_type underflow() override { return asked += 'u', Base::underflow(); }
  int_type uflow() override { return asked += 'U', Base::uflow(); }
  int_type overflow(int_type c) override { return asked += 'o', Base::overflow(c); }
  int sync() override { return asked += 's', Base::sync(); }
};

/// What streams do that ask their buffer now and then; returns what can be seen of it.
template <class Buffer>
std::string use(Buffer& buffer) {
  std::ostringstream seen;
  std::iostream stream(&buffer);
  std::string block(5, '#');
  stream << "word " << 42;
  seen << stream.rdstate() << buffer.asked << " <<\n";
  seen << buffer.sputn("0123456789", 10) << buffer.asked << " sputn\n";
  stream.clear();
  stream.seekg(2);
  seen << stream.rdstate() << buffer.asked << " seekg\n";
  seen << buffer.sgetn(block.data(), 5) << block << buffer.asked << " sgetn\n";
  stream.clear();
  stream.get();
  std::string line;
  std::getline(stream, line);
  seen << stream.rdstate() << line << buffer.asked << " getline\n";
  stream.clear();
  stream.seekp(0, ios::end);
  stream << "tail" << std::flush;
  seen << stream.rdstate() << buffer.asked << " flush\n";
  stream << "more";
  seen << (buffer.close() != nullptr) << buffer.asked << " close\n";
  return seen.str();
}

template <class Base>
std::string use_of_closed() {
  noting<Base> buffer;
  return use(buffer);
}

TEST(DerivedFilebuf, IsAskedWhereItIsClosed) {
  EXPECT_EQ(use_of_closed<ucx::filebuf>(), use_of_closed<std::filebuf>());
}

TEST(DerivedFilebuf, IsAskedForALocalFile) {
  const temporary_directory directory;
  for (const ios::openmode mode : {ios::in | ios::out, ios::openmode(ios::in),
                                   ios::openmode(ios::out), ios::in | ios::out | ios::ate}) {
    noting<ucx::filebuf> ours;
    noting<std::filebuf> standard;
    ASSERT_NE(ours.open(directory.make("ours", "what there is\nand more"), mode), nullptr);
    ASSERT_NE(standard.open(directory.make("std", "what there is\nand more"), mode), nullptr);
    EXPECT_EQ(use(ours), use(standard)) << mode;
    EXPECT_EQ(content_of(directory / "ours"), content_of(directory / "std"));
  }
}

// ---- By URL

class DerivedFilebufByUrl : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return served_.url() + '/' + name; }

  const temporary_directory directory_;
  ucx_server served_;
  const publication store_ = served_.publish_store(directory_ / "", {.writable = true});
};

TEST_F(DerivedFilebufByUrl, IsAsked) {
  directory_.make("data", "what there is\nand more");
  noting<ucx::filebuf> buffer;
  ASSERT_NE(buffer.open(at("data"), ios::in | ios::out), nullptr) << buffer.error_message();
  EXPECT_EQ(buffer.sputn("WHAT", 4), 4);
  EXPECT_EQ(buffer.asked, "o");
  EXPECT_EQ(buffer.pubsync(), 0);
  EXPECT_EQ(buffer.asked, "oso") << "what is unwritten goes through overflow";
  buffer.pubseekpos(0);
  buffer.asked.clear();
  std::string block(4, '#');
  EXPECT_EQ(buffer.sgetn(block.data(), 4), 4);
  EXPECT_EQ(block, "WHAT");
  EXPECT_EQ(buffer.asked, "Uu");
  buffer.pubseekoff(0, ios::end);
  buffer.asked.clear();
  std::ostream(&buffer) << "end";
  EXPECT_NE(buffer.close(), nullptr) << buffer.error_message();
  EXPECT_EQ(buffer.asked, "oo");
  EXPECT_EQ(content_of(directory_ / "data"), "WHAT there is\nand moreend");
}

/// Makes small letters of what is read, and large ones of what is written, in the areas.
template <class Base>
class shouting : public Base {
 public:
  using int_type = typename Base::int_type;
  using traits = typename Base::traits_type;

  ~shouting() override { this->close(); }

 protected:
  int_type underflow() override {
    const int_type first = Base::underflow();
    if (traits::eq_int_type(first, traits::eof())) return first;
    std::transform(this->gptr(), this->egptr(), this->gptr(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return traits::to_int_type(*this->gptr());
  }
  int_type overflow(int_type c) override {
    std::transform(this->pbase(), this->pptr(), this->pbase(),
                   [](unsigned char each) { return static_cast<char>(std::toupper(each)); });
    return Base::overflow(c);
  }
};

TEST_F(DerivedFilebufByUrl, ChangesAllThatIsReadAndWritten) {
  const std::string text(20'000, 'x');
  {
    shouting<ucx::filebuf> out;
    ASSERT_NE(out.open(at("made"), ios::out, {.buffer_size = 1000}), nullptr);
    for (int i = 0; i < 500; ++i) EXPECT_EQ(out.sputn(text.data(), 40), 40);
    EXPECT_NE(out.close(), nullptr) << out.error_message();
  }
  EXPECT_TRUE(content_of(directory_ / "made") == std::string(20'000, 'X'));
  shouting<ucx::filebuf> in;
  ASSERT_NE(in.open(at("made"), ios::in, {.buffer_size = 1000}), nullptr);
  std::string back(20'000, '#');
  EXPECT_EQ(in.sgetn(back.data(), 20'000), 20'000);
  EXPECT_TRUE(back == text);
}

/// Has areas of its own: a put area that it empties by itself, and a get area with something in it.
template <class Base>
class own_areas : public Base {
 public:
  using int_type = typename Base::int_type;
  using traits = typename Base::traits_type;

  void set_areas() {
    this->setp(put_.data(), put_.data() + put_.size());
    std::copy_n("abcd", 4, get_.begin());
    this->setg(get_.data(), get_.data(), get_.data() + get_.size());
  }
  std::string taken;
  int fills = 0;

 protected:
  int_type overflow(int_type c) override {
    taken.append(this->pbase(), this->pptr());
    this->setp(put_.data(), put_.data() + put_.size());
    if (!traits::eq_int_type(c, traits::eof())) taken += traits::to_char_type(c);
    return traits::not_eof(c);
  }
  int_type underflow() override {
    if (fills++ == 2) return traits::eof();
    this->setg(get_.data(), get_.data(), get_.data() + get_.size());
    return traits::to_int_type(*this->gptr());
  }

 private:
  std::array<char, 3> put_{};
  std::array<char, 4> get_{};
};

template <class Buffer>
std::string use_areas(Buffer& buffer) {
  buffer.set_areas();
  std::ostringstream seen;
  std::string block(40, '#');
  seen << buffer.sputn("0123456789", 10) << buffer.taken << '\n';
  std::ostream(&buffer) << "text" << 17;
  seen << buffer.taken << '\n';
  seen << buffer.sgetn(block.data(), 40) << block << buffer.fills << '\n';
  return seen.str();
}

template <class Base>
std::string use_areas_of_closed() {
  own_areas<Base> buffer;
  return use_areas(buffer);
}

TEST(DerivedFilebuf, IsAskedForAreasOfItsOwn) {
  EXPECT_EQ(use_areas_of_closed<ucx::filebuf>(), use_areas_of_closed<std::filebuf>());
}

TEST_F(DerivedFilebufByUrl, IsAskedForAreasOfItsOwn) {
  directory_.make("data", "in the file");
  own_areas<ucx::filebuf> buffer;
  ASSERT_NE(buffer.open(at("data"), ios::in | ios::out), nullptr);
  EXPECT_EQ(use_areas(buffer), use_areas_of_closed<std::filebuf>());
  EXPECT_NE(buffer.close(), nullptr) << buffer.error_message();
  EXPECT_EQ(buffer.taken, "0123456789text17") << "the last of it when it is closed";
  EXPECT_EQ(content_of(directory_ / "data"), "in the file");
}

/// A put area of its own, which is written as if it were the file's.
template <class Base>
struct lent_area : Base {
  void lend(char* begin, std::size_t size) { this->setp(begin, begin + size); }
};

template <class Buffer>
void write_through(Buffer& buffer) {
  std::string area(100, '#');
  buffer.lend(area.data(), area.size());
  EXPECT_EQ(buffer.sputn("lent", 4), 4);
  EXPECT_EQ(buffer.pubsync(), 0);
  buffer.lend(area.data(), area.size());
  EXPECT_EQ(buffer.sputn("again", 5), 5);
  EXPECT_NE(buffer.close(), nullptr);
}

TEST_F(DerivedFilebufByUrl, WritesWhatIsInAnAreaThatItWasLent) {
  lent_area<ucx::filebuf> ours;
  ASSERT_NE(ours.open(at("ours"), ios::out), nullptr);
  write_through(ours);
  lent_area<std::filebuf> standard;
  ASSERT_NE(standard.open(directory_ / "std", ios::out), nullptr);
  write_through(standard);
  EXPECT_EQ(content_of(directory_ / "ours"), "lentagain");
  EXPECT_EQ(content_of(directory_ / "ours"), content_of(directory_ / "std"));
}

template <class Buffer>
void destroy_with_area(Buffer& buffer, std::string& area) {
  buffer->lend(area.data(), area.size());
  EXPECT_EQ(buffer->sputn("lent", 4), 4);
  buffer.reset();
}

TEST_F(DerivedFilebufByUrl, WritesALentAreaWhenDestroyed) {
  std::string area(100, '#');
  std::optional<lent_area<ucx::filebuf>> ours(std::in_place);
  ASSERT_NE(ours->open(at("ours"), ios::out), nullptr);
  destroy_with_area(ours, area);
  std::optional<lent_area<std::filebuf>> standard(std::in_place);
  ASSERT_NE(standard->open(directory_ / "std", ios::out), nullptr);
  destroy_with_area(standard, area);
  EXPECT_EQ(content_of(directory_ / "ours"), "lent");
  EXPECT_EQ(content_of(directory_ / "ours"), content_of(directory_ / "std"));
}

/// Can not write.
template <class Base>
class refusing : public Base {
 protected:
  typename Base::int_type overflow(typename Base::int_type) override {
    throw std::runtime_error("full");
  }
};

TEST_F(DerivedFilebufByUrl, IsClosedWhereItThrows) {
  lent_area<refusing<ucx::filebuf>> ours;
  ASSERT_NE(ours.open(at("ours"), ios::out), nullptr);
  std::string area(100, '#');
  ours.lend(area.data(), area.size());
  EXPECT_EQ(ours.sputn("lent", 4), 4);
  EXPECT_THROW(ours.close(), std::runtime_error);
  EXPECT_FALSE(ours.is_open());
}

}  // namespace
}  // namespace ucx::test
