#include "ucx/error.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "ucp/forked_ucp.hpp"
#include "wire/frame.hpp"

namespace ucx {
namespace {

std::vector<errc> all_values() {
  std::vector<errc> values;
  for (int i = static_cast<int>(errc::invalid_argument); i <= static_cast<int>(detail::last_errc);
       ++i) {
    values.push_back(static_cast<errc>(i));
  }
  return values;
}

TEST(Errc, BelongsToACategoryOfItsOwn) {
  const std::error_code code = errc::timed_out;
  EXPECT_EQ(code.category(), error_category());
  EXPECT_STREQ(code.category().name(), "ucxio");
  EXPECT_EQ(code.value(), static_cast<int>(errc::timed_out));
  EXPECT_NE(code, std::error_code(code.value(), std::generic_category()));
}

TEST(Errc, IsAlwaysAnError) {
  for (const errc value : all_values()) EXPECT_TRUE(make_error_code(value));
}

TEST(Errc, HasATextOfItsOwn) {
  std::set<std::string> texts;
  for (const errc value : all_values()) {
    const std::string text = make_error_code(value).message();
    EXPECT_FALSE(text.empty());
    EXPECT_TRUE(texts.insert(text).second) << text << " is said twice";
  }
}

TEST(Errc, SaysWhatToDoWhereThatIsKnown) {
  EXPECT_NE(make_error_code(errc::no_lockable_memory).message().find("ulimit -l"),
            std::string::npos);
  EXPECT_NE(make_error_code(errc::too_many_files).message().find("ulimit -n"), std::string::npos);
  EXPECT_NE(make_error_code(errc::no_shared_memory).message().find("/dev/shm"), std::string::npos);
}

TEST(Errc, OfAnotherVersionIsUnexpected) {
  const std::error_code code(4711, error_category());
  EXPECT_EQ(code.message(), make_error_code(errc::unexpected).message());
}

TEST(Errc, EqualsTheStandardsConditionWhereOneFits) {
  const std::vector<std::pair<errc, std::errc>> pairs{
      {errc::invalid_argument, std::errc::invalid_argument},
      {errc::out_of_range, std::errc::result_out_of_range},
      {errc::no_space, std::errc::no_space_on_device},
      {errc::permission_denied, std::errc::permission_denied},
      {errc::no_such_region, std::errc::no_such_file_or_directory},
      {errc::bad_descriptor, std::errc::bad_message},
      {errc::bad_address, std::errc::invalid_argument},
      {errc::version_mismatch, std::errc::protocol_not_supported},
      {errc::protocol_error, std::errc::protocol_error},
      {errc::bad_configuration, std::errc::invalid_argument},
      {errc::feature_disabled, std::errc::not_supported},
      {errc::not_supported, std::errc::not_supported},
      {errc::unreachable, std::errc::host_unreachable},
      {errc::connection_refused, std::errc::connection_refused},
      {errc::connection_reset, std::errc::connection_reset},
      {errc::address_in_use, std::errc::address_in_use},
      {errc::timed_out, std::errc::timed_out},
      {errc::canceled, std::errc::operation_canceled},
      {errc::closed, std::errc::bad_file_descriptor},
      {errc::would_deadlock, std::errc::resource_deadlock_would_occur},
      {errc::busy, std::errc::resource_unavailable_try_again},
      {errc::no_memory, std::errc::not_enough_memory},
      {errc::no_shared_memory, std::errc::not_enough_memory},
      {errc::no_lockable_memory, std::errc::not_enough_memory},
      {errc::too_many_files, std::errc::too_many_files_open},
      {errc::message_truncated, std::errc::message_size},
      {errc::io_error, std::errc::io_error},
      {errc::bad_url, std::errc::invalid_argument},
      {errc::bad_name, std::errc::invalid_argument},
      {errc::no_such_name, std::errc::no_such_file_or_directory},
      {errc::already_exists, std::errc::file_exists},
      {errc::not_secure, std::errc::operation_not_permitted},
      {errc::closed_by_peer, std::errc::connection_reset},
      {errc::no_rdma, std::errc::not_supported},
      {errc::would_block, std::errc::operation_would_block},
      {errc::header_too_long, std::errc::message_size},
      {errc::empty_buffer, std::errc::invalid_argument},
      {errc::buffer_too_small, std::errc::result_out_of_range},
      {errc::bad_pool, std::errc::invalid_argument},
      {errc::pooled_buffer, std::errc::invalid_argument},
      {errc::checksum_mismatch, std::errc::bad_message},
      {errc::broken_pipe, std::errc::broken_pipe},
      {errc::too_many_store_files, std::errc::too_many_files_open},
      {errc::too_many_client_files, std::errc::too_many_files_open},
      {errc::too_many_writers, std::errc::too_many_files_open},
      {errc::stale_store, std::errc::io_error},
      {errc::forked_child, std::errc::not_supported},
  };
  std::set<errc> portable;
  for (const auto& [ours, standard] : pairs) {
    EXPECT_EQ(make_error_code(ours), standard) << make_error_code(ours).message();
    portable.insert(ours);
  }
  for (const errc value : all_values()) {
    if (portable.contains(value)) continue;
    const std::error_condition own = make_error_code(value).default_error_condition();
    EXPECT_EQ(own.category(), error_category()) << make_error_code(value).message();
  }
}

TEST(Error, IsCaughtAsWhatStreamUsersCatch) {
  try {
    throw error(errc::connection_reset, "reading 8 bytes at 64 of region 7");
  } catch (const std::ios_base::failure& failure) {
    EXPECT_EQ(failure.code(), errc::connection_reset);
    const std::string text = failure.what();
    EXPECT_NE(text.find("reading 8 bytes at 64 of region 7"), std::string::npos) << text;
    EXPECT_NE(text.find(failure.code().message()), std::string::npos) << text;
    return;
  }
  FAIL() << "not caught";
}

TEST(Error, TellsOfUcxOnlyWhatUcxSaid) {
  EXPECT_EQ(error(errc::timed_out, "", int{UCS_ERR_TIMED_OUT}).ucx_status(), UCS_ERR_TIMED_OUT);
  EXPECT_FALSE(error(errc::forked_child, "", int{detail::status_inherited}).ucx_status());
}

TEST(Error, IsASystemError) {
  EXPECT_THROW(throw error(errc::timed_out, "connecting"), std::system_error);
}

}  // namespace
}  // namespace ucx
