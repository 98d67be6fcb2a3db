#include "copying/new_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "support/files/temporary_directory.hpp"
#include "support/tool/copy_place.hpp"

namespace ucx::test {
namespace {

class NewFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const int unnamed = ::open((folder_ / "").c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (unnamed < 0) GTEST_SKIP() << "the file system has no unnamed files";
    ::close(unnamed);
  }
  bool write(const std::string& name, const std::string& text) {
    return tool::write_new_file(folder_ / name, std::as_bytes(std::span(text)));
  }
  ::mode_t mode_of(const std::string& name) {
    struct ::stat about = {};
    EXPECT_EQ(::stat((folder_ / name).c_str(), &about), 0);
    return about.st_mode;
  }

  temporary_directory folder_;
};

TEST_F(NewFile, AppearsWholeUnderItsNameAlone) {
  EXPECT_TRUE(write("x", "content"));
  EXPECT_EQ(content_of(folder_ / "x"), "content");
  EXPECT_TRUE(write("empty", ""));
  EXPECT_EQ(std::filesystem::file_size(folder_ / "empty"), 0U);
  EXPECT_EQ(names_in(folder_ / "").size(), 2U);
}

TEST_F(NewFile, HasTheModeOfEveryOther) {
  const int other = ::open((folder_ / "other").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  ASSERT_GE(other, 0);
  ::close(other);
  EXPECT_TRUE(write("x", "content"));
  EXPECT_EQ(mode_of("x"), mode_of("other"));
}

TEST_F(NewFile, ReplacesNothing) {
  folder_.make("x", "old");
  EXPECT_FALSE(write("x", "new"));
  EXPECT_EQ(content_of(folder_ / "x"), "old");
  std::filesystem::create_symlink("nowhere", folder_ / "link");
  EXPECT_FALSE(write("link", "new"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "nowhere"));
  EXPECT_EQ(names_in(folder_ / "").size(), 2U);
}

TEST_F(NewFile, IsNotWhereItCanNotBe) {
  EXPECT_FALSE(write("missing/x", "content"));
  EXPECT_FALSE(write(std::string(300, 'x'), "content"));
  EXPECT_TRUE(names_in(folder_ / "").empty());
}

}  // namespace
}  // namespace ucx::test
