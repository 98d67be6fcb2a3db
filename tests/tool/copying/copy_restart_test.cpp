// `ucxio cp --restart-changed`: parts of files that were written anew since are copied anew, and
// nothing else is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/tool/copy_place.hpp"
#include "support/tool/progress_objects.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class CopyRestart : public copy_place {
 protected:
  CopyRestart() {
    other_ = content_.substr(0, 3 * mib);
    other_[mib + 5] ^= 1;
  }

  std::string content_ = pattern_text(4 * mib);
  std::string other_;  // what an earlier copy has left: its first chunk is the same
};

TEST_F(CopyRestart, IsNamedByWhoRefuses) {
  store_.make("x", content_);
  folder_.make("here/.x.ucxio-part", other_);
  expect_failure(run_tool({"cp", "--resume", url("x"), here("x")}), 8,
                 "--restart-changed copies it anew (bytes from 1048576 on)");
  folder_.make("here/.x.ucxio-part", content_ + "more");
  expect_failure(run_tool({"cp", "--resume", url("x"), here("x")}), 8,
                 "it was changed; --restart-changed copies it anew");
}

TEST_F(CopyRestart, CopiesAnewFromTheFirstChangeOn) {
  store_.make("x", content_);
  for (const std::string& left : {other_, content_ + "more", other_.substr(0, 5), std::string()}) {
    folder_.make("here/.x.ucxio-part", left);
    const command_result result =
        run_tool({"cp", "--restart-changed", "--progress", "json", url("x"), here("x")});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(content_of(here("x")) == content_);
    EXPECT_THAT(names_in(folder_ / "here"), UnorderedElementsAre("x"));
    EXPECT_EQ(last_progress_in(result.err)["bytes"], content_.size());
    std::filesystem::remove(here("x"));
  }
}

TEST_F(CopyRestart, CopiesAnewToAServer) {
  folder_.make("here/x", content_);
  store_.make(".x.ucxio-part", other_);
  copy({"--restart-changed", "--verify", here("x"), url("x")});
  EXPECT_TRUE(content_of(there("x")) == content_);
  EXPECT_FALSE(std::filesystem::exists(there(".x.ucxio-part")));
}

/// The checkpoint of the next hour, over what was left of the one before.
TEST_F(CopyRestart, OfATreeCopiesAnewOnlyWhatChanged) {
  std::filesystem::create_directories(folder_ / "step");
  std::filesystem::create_directories(store_ / "step");
  for (const std::string shard : {"1", "2", "3"}) folder_.make("step/" + shard, content_);
  store_.make("step/1", content_);
  store_.make("step/.2.ucxio-part", other_);
  store_.make("step/.3.ucxio-part", content_.substr(0, 2 * mib));
  const std::string from = (folder_ / "step").string();
  const command_result refused = run_tool({"cp", "-r", "--resume", from, server_.url()});
  EXPECT_EQ(refused.code, 11) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("step/2: it is not what was copied before"));
  EXPECT_TRUE(content_of(there("step/3")) == content_);
  const auto before = std::filesystem::last_write_time(there("step/3"));
  copy({"-r", "--restart-changed", from, server_.url()});
  EXPECT_TRUE(content_of(there("step/2")) == content_);
  EXPECT_EQ(std::filesystem::last_write_time(there("step/3")), before);
  EXPECT_EQ(names_in(store_ / "step").size(), 3U);
}

TEST_F(CopyRestart, CopiesAnewFromServerToServerAndCompressed) {
  store_.make("x", content_);
  const temporary_directory copies;
  const tool_server target(
      {"--store", (copies / "").string(), "--writable", "--fetch-from", "127.0.0.1"});
  copies.make(".x.ucxio-part", other_);
  expect_failure(run_tool({"cp", "--direct", "--resume", url("x"), target.url("x")}), 8,
                 "--restart-changed");
  copy({"--direct", "--restart-changed", url("x"), target.url("x")});
  EXPECT_TRUE(content_of(copies / "x") == content_);
  copies.make(".y.ucxio-part", other_);
  folder_.make("here/y", content_);
  copy({"--compress", "lz4", "--restart-changed", here("y"), target.url("y")});
  EXPECT_TRUE(content_of(copies / "y") == content_);
}

}  // namespace
}  // namespace ucx::test
