#include "files/errno_of.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

TEST(ErrnoOf, IsWhatTheErrorStandsFor) {
  EXPECT_EQ(errno_of({}), 0);
  for (const auto& [why, number] :
       std::vector<std::pair<std::error_code, int>>{{errc::no_such_name, ENOENT},
                                                    {errc::permission_denied, EACCES},
                                                    {errc::no_space, ENOSPC},
                                                    {errc::busy, EAGAIN},
                                                    {errc::connection_reset, ECONNRESET},
                                                    {errc::closed_by_peer, ECONNRESET},
                                                    {errc::timed_out, ETIMEDOUT},
                                                    {errc::not_supported, ENOTSUP},
                                                    {errc::closed, EBADF},
                                                    {errc::no_memory, ENOMEM},
                                                    {errc::content_changed, ESTALE},
                                                    {errc::revoked, ESTALE},
                                                    {errc::stale_region, ESTALE},
                                                    {errc::host_not_found, EHOSTUNREACH},
                                                    {errc::unexpected, EIO},
                                                    {{EXDEV, std::generic_category()}, EXDEV},
                                                    {{ENOTDIR, std::system_category()}, ENOTDIR},
                                                    {std::io_errc::stream, EIO}}) {
    EXPECT_EQ(errno_of(why), number) << why.message();
  }
}

}  // namespace
}  // namespace ucx::detail
