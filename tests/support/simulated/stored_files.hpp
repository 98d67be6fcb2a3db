// A simulated server of a writable store, and a client whose requests the test drives.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "support/simulated/simulated_server.hpp"
#include "ucx/client.hpp"
#include "ucx/request.hpp"
#include "ucx/server.hpp"

namespace ucx::test {

/// A server of a writable store and of memory, and a client whose worker this thread drives.
class stored_files {
 public:
  // The threads of the store get half a minute of real time, and more, before a deadline passes.
  static constexpr std::chrono::milliseconds pause{1};
  static constexpr int rounds = 60000;

  explicit stored_files(const link_options& link = {}, std::uint64_t seed = 1)
      : served({.link = link, .seed = seed, .pause = pause}) {
    folder.make("file", "content");
    stored.emplace(served.server().publish_store(folder / "", {.writable = true}));
    memory.emplace(served.server().publish("memory", std::span<const std::byte>(bytes)));
    asking.emplace(served.connect());
  }
  void round() {
    asking->worker().progress();
    if (!served.process.killed()) served.server().worker().progress();
    served.network.advance(std::chrono::milliseconds(1));
  }
  /// Drives both sides until it is done.
  void finish(request& awaited) {
    for (int i = 0; i < rounds && !awaited.done(); ++i) round();
    ASSERT_TRUE(awaited.done()) << awaited.description();
  }
  void succeed(request awaited) {
    finish(awaited);
    EXPECT_FALSE(awaited.error()) << awaited.description() << ": " << awaited.error().message();
  }
  /// Returns how many files the store has that got no name.
  std::size_t unfinished() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder / ".ucxio-unfinished"), {}));
  }

  const temporary_directory folder;
  const std::vector<std::byte> bytes = std::vector<std::byte>(1000, std::byte{7});
  simulated_server served;
  std::optional<publication> stored;
  std::optional<publication> memory;
  std::optional<client> asking;
};

}  // namespace ucx::test
