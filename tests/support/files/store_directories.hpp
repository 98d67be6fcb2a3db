// A directory that tests publish as a store.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "ucx/client.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {

/// A directory of four files, and what tests ask and write of it.
class Store : public testing::Test {
 protected:
  Store() {
    std::filesystem::create_directories(directory_ / "a/b");
    directory_.make("one", "first");
    directory_.make("a/two", "second");
    directory_.make("a/b/three", "third");
    directory_.make("a.txt", "between");
  }

  static std::vector<std::string> names_of(const std::vector<entry>& listed) {
    std::vector<std::string> names;
    for (const entry& each : listed) names.push_back(each.name);
    return names;
  }

  static std::string all_of(client& from, const std::string& name) {
    istream in(from.open(name));
    return std::string(std::istreambuf_iterator<char>(in), {});
  }

  static std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
  }

  static void write_all(client& to, const std::string& name, std::string_view text,
                        const create_options& how = {}) {
    remote_region file = to.create(name, how);
    file.write_at(how.mode == creation::append ? file.size() : 0, bytes_of(text));
    to.commit(file);
  }

  /// Returns what the directory has beside what is whole.
  static std::size_t unfinished_in(const std::filesystem::path& directory) {
    const auto spool = directory / ".ucxio-unfinished";
    if (!std::filesystem::exists(spool)) return 0;
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(spool), {}));
  }

  std::filesystem::path root() const { return directory_ / ""; }

  const temporary_directory directory_;
};

}  // namespace ucx::test
