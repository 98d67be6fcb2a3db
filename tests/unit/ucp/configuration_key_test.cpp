#include "ucp/configuration_key.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace ucx::detail {
namespace {

using standing = configuration_key::standing;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr version_number debian_12{1, 13, 1};
constexpr version_number debian_13{1, 18, 1};
constexpr version_number wheel{1, 22, 0};

TEST(ConfigurationKey, IsSpelledAsTheVersionWantsIt) {
  EXPECT_THAT(find_configuration_key("TCP_TX_SEG_SIZE", debian_12).spellings,
              ElementsAre("TX_SEG_SIZE"));
  EXPECT_THAT(find_configuration_key("TX_SEG_SIZE", debian_12).spellings,
              ElementsAre("TX_SEG_SIZE"));
  for (const version_number version : {version_number{1, 17, 0}, debian_13, wheel}) {
    EXPECT_THAT(find_configuration_key("TCP_TX_SEG_SIZE", version).spellings,
                ElementsAre("TCP_TX_SEG_SIZE"));
    EXPECT_THAT(find_configuration_key("TX_SEG_SIZE", version).spellings,
                ElementsAre("TCP_TX_SEG_SIZE"));
  }
  EXPECT_THAT(find_configuration_key("TCP_TX_SEG_SIZE", {2, 0, 0}).spellings,
              ElementsAre("TCP_TX_SEG_SIZE"));
}

TEST(ConfigurationKey, IsSpelledByItsLayerBefore117) {
  EXPECT_THAT(find_configuration_key("POSIX_FIFO_SIZE", debian_12).spellings,
              ElementsAre("MM_FIFO_SIZE"));
  EXPECT_THAT(find_configuration_key("POSIX_FIFO_SIZE", wheel).spellings,
              ElementsAre("POSIX_FIFO_SIZE"));
  EXPECT_THAT(find_configuration_key("MM_FIFO_SIZE", wheel).spellings, ElementsAre("MM_FIFO_SIZE"));
  EXPECT_THAT(find_configuration_key("RC_VERBS_TX_QUEUE_LEN", debian_12).spellings,
              ElementsAre("RC_TX_QUEUE_LEN"));
  EXPECT_THAT(find_configuration_key("UD_MLX5_AR_ENABLE", debian_12).spellings,
              ElementsAre("IB_AR_ENABLE"));
  EXPECT_THAT(find_configuration_key("CMA_BW", debian_12).spellings, ElementsAre("SM_BW"));
}

TEST(ConfigurationKey, WithoutItsTransportIsForAllThatHaveIt) {
  const configuration_key found = find_configuration_key("MAX_POLL", wheel);
  EXPECT_EQ(found.where, standing::settable);
  EXPECT_THAT(found.spellings,
              UnorderedElementsAre("TCP_MAX_POLL", "CUDA_COPY_MAX_POLL", "CUDA_IPC_MAX_POLL"));
  EXPECT_THAT(find_configuration_key("MAX_POLL", debian_12).spellings, ElementsAre("MAX_POLL"));
}

TEST(ConfigurationKey, OfConnectionManagersIsTheSameInEveryVersion) {
  for (const version_number version : {debian_12, debian_13, wheel}) {
    EXPECT_THAT(find_configuration_key("CM_REUSEADDR", version).spellings,
                ElementsAre("CM_REUSEADDR"));
  }
}

TEST(ConfigurationKey, OfANewerVersionIsKnownAsSuch) {
  EXPECT_EQ(find_configuration_key("TCP_USER_TIMEOUT", debian_12).where, standing::later);
  EXPECT_EQ(find_configuration_key("TCP_USER_TIMEOUT", debian_13).where, standing::later);
  EXPECT_EQ(find_configuration_key("TCP_USER_TIMEOUT", wheel).where, standing::settable);
  EXPECT_EQ(find_configuration_key("SELF_SEG_SIZE", debian_12).where, standing::later);
}

TEST(ConfigurationKey, OfTheProcessMayNeedTheEnvironment) {
  EXPECT_EQ(find_configuration_key("LOG_LEVEL", wheel).where, standing::settable);
  for (const char* const key : {"LOG_FILE", "MEM_EVENTS", "PROFILE_MODE", "VFS_ENABLE"}) {
    EXPECT_EQ(find_configuration_key(key, debian_12).where, standing::environment_only) << key;
  }
}

TEST(ConfigurationKey, ThatNobodyKnowsIsUnknown) {
  for (const char* const key :
       {"", "NO_SUCH", "TCP_", "TX_SEG", "UCX_TCP_TX_SEG_SIZE", "TCP_TX_SEG_SIZE ",
        "tcp_tx_seg_size", "TX_SEG_SIZE RX_SEG_SIZE", "XTCP_TX_SEG_SIZE", "UD_TX_SEG_SIZE"}) {
    const configuration_key found = find_configuration_key(key, debian_12);
    EXPECT_EQ(found.where, standing::unknown) << key;
    EXPECT_TRUE(found.spellings.empty()) << key;
  }
}

TEST(ConfigurationKey, KnowsItsValues) {
  EXPECT_TRUE(find_configuration_key("TCP_KEEPIDLE", wheel).rule.accepts("10s"));
  EXPECT_FALSE(find_configuration_key("TCP_KEEPIDLE", wheel).rule.accepts("ten"));
  EXPECT_TRUE(find_configuration_key("LOG_LEVEL", wheel).rule.accepts("fatal"));
  EXPECT_FALSE(find_configuration_key("LOG_LEVEL", wheel).rule.accepts("loud"));
  EXPECT_TRUE(
      find_configuration_key("POSIX_SEND_OVERHEAD", wheel).rule.accepts("am_short:1us,5us"));
  EXPECT_FALSE(find_configuration_key("POSIX_SEND_OVERHEAD", wheel).rule.accepts("am_long:1us"));
}

TEST(ConfigurationKey, HasEveryNameOnlyOnceAndFindsEachOne) {
  std::set<std::string> seen;
  for (const std::string& name : configuration_key_names()) {
    EXPECT_TRUE(seen.insert(name).second) << name;
    const configuration_key found = find_configuration_key(name, {1, 99, 0});
    EXPECT_EQ(found.where, standing::settable) << name;
    EXPECT_THAT(found.spellings, ElementsAre(name));
    EXPECT_LE(find_configuration_key(name, debian_12).spellings.size(), 1U) << name;
  }
  EXPECT_GT(seen.size(), 500U);
}

TEST(TransportName, IsWhatTheVersionHas) {
  for (const char* const name : {"all", "tcp", "sm", "posix", "cma", "self", "ib", "rc", "cuda"}) {
    EXPECT_TRUE(is_transport_name(name, debian_12)) << name;
    EXPECT_TRUE(is_transport_name(name, wheel)) << name;
  }
  EXPECT_FALSE(is_transport_name("gga", debian_12));
  EXPECT_TRUE(is_transport_name("gga", wheel));
  EXPECT_TRUE(is_transport_name("rocm_gdr", debian_12));
  EXPECT_FALSE(is_transport_name("rocm_gdr", wheel));
  for (const char* const name :
       {"", "TCP", "tcp ", "tcp,self", "^tcp", "\\tcp", "ud:aux", "eth0"}) {
    EXPECT_FALSE(is_transport_name(name, wheel)) << name;
  }
}

TEST(TransportName, IsListedForErrorTexts) {
  EXPECT_NE(transport_names(wheel).find("gaudi"), std::string::npos);
  EXPECT_EQ(transport_names(debian_12).find("gaudi"), std::string::npos);
  EXPECT_EQ(transport_names(debian_12).find(", all"), std::string::npos);
}

}  // namespace
}  // namespace ucx::detail
