#include "ucp/resource_error.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "ucp/status.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// The process can open no further file while this lives.
class no_more_files {
 public:
  no_more_files() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(next);
    ::rlimit now = before_;
    now.rlim_cur = static_cast<::rlim_t>(next);
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  ~no_more_files() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  no_more_files(const no_more_files&) = delete;
  no_more_files& operator=(const no_more_files&) = delete;

 private:
  ::rlimit before_ = {};
};

TEST(ResourceError, NamesTheLackOfFilesOnlyWhereUcxMayMeanIt) {
  const std::vector<std::pair<ucs_status_t, std::error_code>> cases{
      {UCS_ERR_IO_ERROR, errc::too_many_files},        {UCS_ERR_NO_MEMORY, errc::too_many_files},
      {UCS_ERR_NO_RESOURCE, errc::too_many_files},     {UCS_ERR_NO_DEVICE, errc::too_many_files},
      {UCS_ERR_INVALID_PARAM, errc::invalid_argument}, {UCS_ERR_UNSUPPORTED, errc::not_supported},
      {UCS_ERR_UNREACHABLE, errc::unreachable},        {UCS_OK, {}}};
  std::vector<std::error_code> found;
  {
    // Looked at afterwards: a sanitizer opens files of its own to look at an object.
    const no_more_files limit;
    for (const auto& each : cases) found.push_back(resource_error(each.first));
  }
  for (std::size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(found[i], cases[i].second) << i;
}

TEST(ResourceError, SaysThatMemoryIsLackingToConnect) {
  EXPECT_EQ(connect_error(), std::error_code());
  ::rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  ::rlimit little = before;
  little.rlim_cur = 1U << 20U;  // less than there is already
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &little), 0);
  const std::error_code found = connect_error();
  ::setrlimit(RLIMIT_AS, &before);
  EXPECT_EQ(found, errc::no_memory);
}

/// The process may lock this much while this lives, or more where it has that right.
class lock_limit {
 public:
  explicit lock_limit(::rlim_t most) {
    ::getrlimit(RLIMIT_MEMLOCK, &before_);
    ::rlimit now = before_;
    now.rlim_cur = most;
    ::setrlimit(RLIMIT_MEMLOCK, &now);
  }
  ~lock_limit() { ::setrlimit(RLIMIT_MEMLOCK, &before_); }
  lock_limit(const lock_limit&) = delete;
  lock_limit& operator=(const lock_limit&) = delete;

 private:
  ::rlimit before_ = {};
};

TEST(ResourceError, OfAWorkerNamesLockedMemoryWhereThereIsRdma) {
  const lock_limit little(65'536);
  const std::vector<std::string> hardware{"tcp/eth0", "rc_verbs/rxe0:1"};
  for (const ucs_status_t status : {UCS_ERR_IO_ERROR, UCS_ERR_NO_MEMORY}) {
    EXPECT_EQ(worker_error(status, hardware), errc::no_lockable_memory);
    EXPECT_EQ(worker_error(status, {"tcp/eth0"}), make_error(status));
  }
  EXPECT_EQ(worker_error(UCS_ERR_UNREACHABLE, hardware), errc::unreachable);
  EXPECT_EQ(words_of_lock_limit(), "the process may lock 65536 bytes, see ulimit -l");
}

TEST(ResourceError, IsUcxsOwnWhileThereAreFiles) {
  EXPECT_EQ(resource_error(UCS_ERR_IO_ERROR), errc::io_error);
  EXPECT_EQ(resource_error(UCS_ERR_NO_MEMORY), errc::no_memory);
}

}  // namespace
}  // namespace ucx::detail
