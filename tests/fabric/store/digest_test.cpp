// Files that their owner hashes, so that nobody has to fetch them.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/bytes/bytes_of.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

std::vector<content_digest> digests_of(const std::string& text, std::size_t chunk) {
  std::vector<content_digest> all;
  for (std::size_t at = 0; at < text.size(); at += chunk) {
    all.push_back(digest_of(bytes_of(text).subspan(at, std::min(chunk, text.size() - at))));
  }
  return all;
}

TEST(ContentDigest, IsXxh3OfAllBytes) {
  // What xxh128sum says of these.
  EXPECT_EQ(to_string(digest_of({})), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(to_string(digest_of(bytes_of("ucxio"))), to_string(digest_of(bytes_of("ucxio"))));
  EXPECT_NE(digest_of(bytes_of("ucxio")), digest_of(bytes_of("ucxip")));
  content_hasher hasher;
  hasher.update(bytes_of("uc"));
  content_hasher moved = std::move(hasher);
  moved.update(bytes_of("xio"));
  EXPECT_EQ(moved.digest(), digest_of(bytes_of("ucxio")));
}

/// A file of a store, or one that is published by itself.
class HashedFile : public testing::TestWithParam<const char*> {
 protected:
  HashedFile() {
    content_.resize((5U << 20U) + 3);
    fill_pattern(std::as_writable_bytes(std::span(content_)));
    directory_.make("x", content_);
    const bool in_store = std::string(GetParam()) == "store";
    published_.emplace(in_store ? served_.publish_store(directory_ / "", {.prefix = "s"})
                                : served_.publish_file("s/x", directory_ / "x", access::read));
    client_.emplace(served_.url());
    region_.emplace(client_->open("s/x"));
  }

  std::error_code failure_of(const digest_range& wanted) {
    std::error_code ec;
    EXPECT_TRUE(client_->digest(*region_, wanted, {}, ec).empty());
    return ec;
  }

  const temporary_directory directory_;
  std::string content_;
  ucx_server served_;
  std::optional<publication> published_;
  std::optional<client> client_;
  std::optional<remote_region> region_;
};

TEST_P(HashedFile, HasTheHashOfEachChunk) {
  const std::uint64_t size = content_.size();
  for (const std::size_t chunk :
       {std::size_t{1} << 20U, std::size_t{10'000}, content_.size(), content_.size() * 3}) {
    EXPECT_EQ(client_->digest(*region_, {.length = size, .chunk = chunk}),
              digests_of(content_, chunk))
        << chunk;
  }
  EXPECT_EQ(client_->digest(*region_, {.offset = 7, .length = 1000, .chunk = 300}),
            digests_of(content_.substr(7, 1000), 300));
  EXPECT_TRUE(client_->digest(*region_, {}).empty());
}

TEST_P(HashedFile, HasNoneBeyondItsEnd) {
  const std::uint64_t size = content_.size();
  EXPECT_EQ(failure_of({.length = size + 1}), errc::out_of_range);
  EXPECT_EQ(failure_of({.offset = ~std::uint64_t{0}, .length = 2}), errc::out_of_range);
  EXPECT_EQ(failure_of({.length = 1, .chunk = 0}), errc::invalid_argument);
  std::filesystem::resize_file(directory_ / "x", 1000);
  EXPECT_EQ(failure_of({.length = size}), errc::content_changed);
  EXPECT_EQ(client_->digest(*region_, {.length = 1000}),
            digests_of(content_.substr(0, 1000), 1000));
}

TEST_P(HashedFile, IsHashedForWhoHasItOpen) {
  client other(served_.url());
  std::error_code ec;
  other.digest(*region_, {.length = 1}, {}, ec);
  EXPECT_EQ(ec, errc::no_such_region);
  published_->close();
  EXPECT_EQ(failure_of({.length = 1}), errc::revoked);
  client_->close();
  EXPECT_TRUE(failure_of({.length = 1}));
}

INSTANTIATE_TEST_SUITE_P(Kinds, HashedFile, testing::Values("store", "file"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST(HashedMemory, IsNotHashedByItsOwner) {
  std::string memory = "content";
  ucx_server owner;
  const publication shown = owner.publish("m", bytes_of(memory));
  client reader(owner.url());
  remote_region region = reader.open("m");
  std::error_code ec;
  reader.digest(region, {.length = 7}, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
}

TEST(HashedFileOfAWriter, HasWhatWasFlushed) {
  const temporary_directory directory;
  ucx_server served;
  const publication store = served.publish_store(directory / "", {.writable = true});
  client writer(served.url());
  remote_region region = writer.create("x", {.readable = true});
  const std::string text(100'000, 'x');
  region.write_at(0, bytes_of(text));
  region.flush();
  EXPECT_EQ(writer.digest(region, {.length = text.size()}), digests_of(text, text.size()));
  remote_region unreadable = writer.create("y");
  unreadable.write_at(0, bytes_of(text));
  unreadable.flush();
  std::error_code ec;
  writer.digest(unreadable, {.length = 1}, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
}

}  // namespace
}  // namespace ucx::test
