#include "store/directory_place.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "support/files/temporary_directory.hpp"
#include "support/process/own_mounts.hpp"

namespace ucx::detail {
namespace {

using test::temporary_directory;

owned_descriptor open_directory(const std::filesystem::path& path) {
  return owned_descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

enum outcome { found = 0, gone = 1, not_permitted = 2 };

bool mount_memory(const std::string& at) {
  return ::mount("tmpfs", at.c_str(), "tmpfs", 0, "size=1m") == 0;
}

class DirectoryPlace : public testing::Test {
 protected:
  DirectoryPlace() {
    std::filesystem::create_directories(above_ / "store");
    std::filesystem::create_directories(above_ / "root");
  }

  /// What a child finds, whose mounts and root are its own.
  int told_by_child(const std::function<outcome()>& work) const {
    const ::pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      const std::string at = above_ / "";
      const bool permitted = test::leave_shared_mounts() && test::keep_mounts_private(at.c_str());
      ::_exit(permitted ? work() : not_permitted);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  const temporary_directory above_;
  const std::string at_ = above_ / "store";
};

TEST_F(DirectoryPlace, IsGoneWhenItIsRemoved) {
  const owned_descriptor opened = open_directory(at_);
  const directory_place place(opened.get(), at_);
  EXPECT_FALSE(place.is_gone(opened.get()));
  std::filesystem::remove(at_);
  EXPECT_TRUE(place.is_gone(opened.get()));
  std::filesystem::create_directory(at_);  // another one
  EXPECT_TRUE(place.is_gone(opened.get()));
}

TEST_F(DirectoryPlace, IsThereUnderAnotherName) {
  const owned_descriptor opened = open_directory(at_);
  const directory_place place(opened.get(), at_);
  std::filesystem::rename(at_, above_ / "renamed (deleted)");
  EXPECT_FALSE(place.is_gone(opened.get()));
  std::filesystem::create_directory(at_);
  EXPECT_FALSE(place.is_gone(opened.get()));
}

TEST_F(DirectoryPlace, IsThereWhenALinkToItLeadsElsewhere) {
  const std::string link = above_ / "current";
  std::filesystem::create_directory_symlink("store", link);
  const owned_descriptor opened = open_directory(link);
  const directory_place place(opened.get(), link);
  std::filesystem::remove(link);
  EXPECT_FALSE(place.is_gone(opened.get()));
  std::filesystem::create_directory_symlink("root", link);
  EXPECT_FALSE(place.is_gone(opened.get()));
}

TEST_F(DirectoryPlace, IsThereWhereTheProcessHasAnotherRoot) {
  for (const char* const name : {"root", ""}) {
    const std::string root = above_ / name;
    const int told = told_by_child([&] {
      const owned_descriptor opened = open_directory(at_);
      const directory_place place(opened.get(), at_);
      if (::chroot(root.c_str()) != 0) return not_permitted;
      return place.is_gone(opened.get()) ? gone : found;
    });
    EXPECT_EQ(told, found) << root;
  }
}

TEST_F(DirectoryPlace, IsThereWhereTheProcessLeavesASecondRoot) {
  const int told = told_by_child([&] {
    if (::chroot((above_ / "").c_str()) != 0) return not_permitted;
    const owned_descriptor opened = open_directory("/store");
    const directory_place place(opened.get(), "/store");
    if (::chroot("/root") != 0) return not_permitted;
    return place.is_gone(opened.get()) ? gone : found;
  });
  EXPECT_EQ(told, found);
}

TEST_F(DirectoryPlace, IsGoneWhenRemovedOutsideOfTheRoot) {
  const int told = told_by_child([&] {
    const owned_descriptor opened = open_directory(at_);
    const directory_place place(opened.get(), at_);
    std::filesystem::remove(at_);
    if (::chroot((above_ / "root").c_str()) != 0) return not_permitted;
    return place.is_gone(opened.get()) ? gone : found;
  });
  EXPECT_EQ(told, gone);
}

TEST_F(DirectoryPlace, IsGoneWhenItsFileSystemIsUnmounted) {
  for (const bool has_other_root : {false, true}) {
    const int told = told_by_child([&] {
      if (!mount_memory(at_)) return not_permitted;
      std::filesystem::create_directory(at_ + "/in");
      const owned_descriptor opened = open_directory(at_ + "/in");
      const directory_place place(opened.get(), at_ + "/in");
      if (place.is_gone(opened.get())) return gone;
      if (::umount2(at_.c_str(), MNT_DETACH) != 0) return not_permitted;
      std::filesystem::create_directory(at_ + "/in");  // another one
      if (has_other_root && ::chroot((above_ / "root").c_str()) != 0) return not_permitted;
      const bool is_gone = place.is_gone(opened.get());
      return is_gone ? gone : found;
    });
    EXPECT_EQ(told, gone) << has_other_root;
    std::filesystem::remove(at_ + "/in");
  }
}

TEST_F(DirectoryPlace, IsGoneUnderWhatIsMountedOverIt) {
  const int told = told_by_child([&] {
    const owned_descriptor opened = open_directory(at_);
    const directory_place place(opened.get(), at_);
    if (!mount_memory(at_)) return not_permitted;
    return place.is_gone(opened.get()) ? gone : found;
  });
  EXPECT_EQ(told, gone);
}

}  // namespace
}  // namespace ucx::detail
