#include "ucp/status.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "ucp/forked_ucp.hpp"

namespace ucx::detail {
namespace {

TEST(Status, MapsEachFailureOfUcxs) {
  const std::vector<std::pair<ucs_status_t, errc>> pairs{
      {UCS_ERR_NO_MESSAGE, errc::unexpected},
      {UCS_ERR_NO_RESOURCE, errc::busy},
      {UCS_ERR_IO_ERROR, errc::io_error},
      {UCS_ERR_NO_MEMORY, errc::no_memory},
      {UCS_ERR_INVALID_PARAM, errc::invalid_argument},
      {UCS_ERR_UNREACHABLE, errc::unreachable},
      {UCS_ERR_INVALID_ADDR, errc::bad_address},
      {UCS_ERR_NOT_IMPLEMENTED, errc::not_supported},
      {UCS_ERR_MESSAGE_TRUNCATED, errc::message_truncated},
      {UCS_ERR_NO_PROGRESS, errc::busy},
      {UCS_ERR_BUFFER_TOO_SMALL, errc::message_truncated},
      {UCS_ERR_NO_ELEM, errc::unexpected},
      {UCS_ERR_SOME_CONNECTS_FAILED, errc::connection_reset},
      {UCS_ERR_NO_DEVICE, errc::unreachable},
      {UCS_ERR_BUSY, errc::busy},
      {UCS_ERR_CANCELED, errc::canceled},
      {UCS_ERR_SHMEM_SEGMENT, errc::no_shared_memory},
      {UCS_ERR_ALREADY_EXISTS, errc::unexpected},
      {UCS_ERR_OUT_OF_RANGE, errc::out_of_range},
      {UCS_ERR_TIMED_OUT, errc::timed_out},
      {UCS_ERR_EXCEEDS_LIMIT, errc::too_many_files},
      {UCS_ERR_UNSUPPORTED, errc::not_supported},
      {status_inherited, errc::forked_child},
      {UCS_ERR_REJECTED, errc::connection_refused},
      {UCS_ERR_NOT_CONNECTED, errc::connection_reset},
      {UCS_ERR_CONNECTION_RESET, errc::connection_reset},
      {UCS_ERR_FIRST_LINK_FAILURE, errc::connection_reset},
      {UCS_ERR_LAST_LINK_FAILURE, errc::connection_reset},
      {UCS_ERR_FIRST_ENDPOINT_FAILURE, errc::connection_reset},
      {UCS_ERR_ENDPOINT_TIMEOUT, errc::connection_reset},
      {UCS_ERR_LAST_ENDPOINT_FAILURE, errc::connection_reset},
      {UCS_ERR_LAST, errc::unexpected},
  };
  for (const auto& [status, expected] : pairs) {
    EXPECT_EQ(to_errc(status), expected) << ucs_status_string(status);
    EXPECT_EQ(make_error(status), expected) << ucs_status_string(status);
  }
}

TEST(Status, OfATransferTellsOfItsConnection) {
  for (const ucs_status_t status :
       {UCS_ERR_CONNECTION_RESET, UCS_ERR_ENDPOINT_TIMEOUT, UCS_ERR_NOT_CONNECTED,
        UCS_ERR_FIRST_LINK_FAILURE, UCS_ERR_TIMED_OUT, UCS_ERR_CANCELED}) {
    EXPECT_EQ(fate_of(status), transfer_fate::lost) << ucs_status_string(status);
    EXPECT_EQ(transfer_error(status), errc::connection_reset) << ucs_status_string(status);
  }
  EXPECT_EQ(fate_of(UCS_ERR_IO_ERROR), transfer_fate::unclear);
  EXPECT_EQ(transfer_error(UCS_ERR_IO_ERROR), errc::io_error);
  EXPECT_FALSE(transfer_error(UCS_OK));
  for (const ucs_status_t status : {UCS_ERR_NO_MEMORY, UCS_ERR_UNREACHABLE, UCS_ERR_INVALID_PARAM,
                                    UCS_ERR_NO_RESOURCE, UCS_ERR_UNSUPPORTED}) {
    EXPECT_EQ(fate_of(status), transfer_fate::alone) << ucs_status_string(status);
    EXPECT_EQ(transfer_error(status), make_error(status)) << ucs_status_string(status);
  }
}

TEST(Status, NamesALossByHowFarTheConnectionHadCome) {
  struct loss {
    ucs_status_t status;
    errc dialing;
    errc greeting;
    errc standing;
  };
  constexpr errc refused = errc::connection_refused;
  constexpr errc reset = errc::connection_reset;
  const loss losses[] = {
      {UCS_ERR_REJECTED, refused, refused, refused},
      {UCS_ERR_NOT_CONNECTED, refused, reset, reset},
      {UCS_ERR_CONNECTION_RESET, refused, reset, reset},
      {UCS_ERR_ENDPOINT_TIMEOUT, refused, reset, reset},
      {UCS_ERR_TIMED_OUT, errc::timed_out, errc::timed_out, reset},
      {UCS_ERR_CANCELED, reset, reset, reset},
      {UCS_ERR_IO_ERROR, reset, reset, reset},
      {UCS_ERR_LAST, reset, reset, reset},
      {UCS_ERR_UNREACHABLE, errc::unreachable, errc::unreachable, errc::unreachable},
  };
  for (const loss& each : losses) {
    SCOPED_TRACE(words(each.status));
    EXPECT_EQ(to_loss(each.status, connection_stage::dialing), each.dialing);
    EXPECT_EQ(to_loss(each.status, connection_stage::greeting), each.greeting);
    EXPECT_EQ(to_loss(each.status, connection_stage::standing), each.standing);
  }
}

TEST(Status, MapsNumbersInsideUcxsRanges) {
  for (int value = UCS_ERR_FIRST_LINK_FAILURE; value >= UCS_ERR_LAST_ENDPOINT_FAILURE; --value) {
    EXPECT_EQ(to_errc(static_cast<ucs_status_t>(value)), errc::connection_reset) << value;
  }
  for (const int value : {-26, -39, -90, -99}) {
    EXPECT_EQ(to_errc(static_cast<ucs_status_t>(value)), errc::unexpected) << value;
  }
}

TEST(Status, OfSuccessAndOfWorkInProgressIsNoError) {
  EXPECT_FALSE(make_error(UCS_OK));
  EXPECT_FALSE(make_error(UCS_INPROGRESS));
}

TEST(Status, GivesUcxsOwnWords) {
  EXPECT_EQ(words(UCS_ERR_UNREACHABLE), "Destination is unreachable");
  EXPECT_EQ(words(UCS_OK), "Success");
}

TEST(Status, MapsErrno) {
  const std::vector<std::pair<int, errc>> pairs{
      {EINVAL, errc::invalid_argument},
      {EAFNOSUPPORT, errc::bad_address},
      {EACCES, errc::permission_denied},
      {EPERM, errc::permission_denied},
      {ENOMEM, errc::no_memory},
      {ENOBUFS, errc::no_memory},
      {ENOSPC, errc::no_space},
      {EMFILE, errc::too_many_files},
      {ENFILE, errc::too_many_files},
      {EAGAIN, errc::busy},
      {EBUSY, errc::busy},
      {EINTR, errc::busy},
      {EADDRINUSE, errc::address_in_use},
      {EADDRNOTAVAIL, errc::unreachable},
      {EHOSTUNREACH, errc::unreachable},
      {ENETUNREACH, errc::unreachable},
      {ENETDOWN, errc::unreachable},
      {EHOSTDOWN, errc::unreachable},
      {ENODEV, errc::unreachable},
      {ECONNREFUSED, errc::connection_refused},
      {ECONNRESET, errc::connection_reset},
      {ECONNABORTED, errc::connection_reset},
      {ENOTCONN, errc::connection_reset},
      {EPIPE, errc::connection_reset},
      {ETIMEDOUT, errc::timed_out},
      {ECANCELED, errc::canceled},
      {EBADF, errc::closed},
      {EDEADLK, errc::would_deadlock},
      {EMSGSIZE, errc::message_truncated},
      {ENOSYS, errc::not_supported},
      {EOPNOTSUPP, errc::not_supported},
      {EPROTONOSUPPORT, errc::not_supported},
      {EPROTO, errc::protocol_error},
      {EIO, errc::io_error},
      {EXDEV, errc::io_error},
  };
  for (const auto& [number, expected] : pairs) {
    EXPECT_EQ(from_errno(number), expected) << std::generic_category().message(number);
  }
}

}  // namespace
}  // namespace ucx::detail
