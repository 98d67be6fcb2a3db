// What is whole of a tree that is being copied, or whose copy has ended on the way.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>

#include "support/files/temporary_directory.hpp"

namespace ucx::test {

/// Returns the number of a file on its disk: one that was begun anew has another.
inline ino_t identity(const std::filesystem::path& file) {
  struct ::stat about = {};
  EXPECT_EQ(::stat(file.c_str(), &about), 0) << file;
  return about.st_ino;
}

/// Returns whether it is what a copy has not finished.
inline bool is_part(const std::filesystem::path& file) { return file.extension() == ".ucxio-part"; }

/// Returns the files of `copy` that are whole, by their paths in it, and expects that they are as
/// those of `original`. None where there is no such directory.
inline std::map<std::string, ino_t> whole_files(const std::filesystem::path& copy,
                                                const std::filesystem::path& original) {
  std::map<std::string, ino_t> found;
  if (!std::filesystem::exists(copy)) return found;
  for (const auto& each : std::filesystem::recursive_directory_iterator(copy)) {
    if (!each.is_regular_file() || is_part(each.path())) continue;
    const std::filesystem::path name = std::filesystem::relative(each.path(), copy);
    EXPECT_TRUE(content_of(each.path()) == content_of(original / name)) << name;
    found.emplace(name.string(), identity(each.path()));
  }
  return found;
}

}  // namespace ucx::test
