// Senders whose operation could not begin: what the receiver is told, and when it may go.
#include <gtest/gtest.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/execution/own_names.hpp"
#include "support/execution/recorder.hpp"
#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/execution.hpp"

namespace ucx::test {
namespace {

/// Starts an operation whose call throws, by code and with text.
struct failed_start {
  explicit failed_start(std::function<void()> thrower) {
    const auto call = [thrower = std::move(thrower)]() -> request {
      thrower();
      return {};
    };
    auto state = async_start(pair.reader, call).connect(recorder(by_code));
    state.start();
    auto told = with_text(async_start(pair.reader, call)).connect(recorder(with_words));
    told.start();
    EXPECT_EQ(by_code.how, completion::error);
    EXPECT_EQ(with_words.how, completion::error);
    EXPECT_EQ(by_code.calls + with_words.calls, 2);
  }
  /// Returns the words of the exception, if it is one of these.
  template <class Exception>
  std::string words() const {
    try {
      if (with_words.thrown) std::rethrow_exception(with_words.thrown);
    } catch (const Exception& thrown) {
      return thrown.what();
    }
    return {};
  }

  simulated_pair pair;
  record by_code;
  record with_words;
};

TEST(FailedStart, IsTheCodeOfWhatTheCallThrew) {
  const failed_start failed([] { throw error(make_error_code(errc::busy), "the words"); });
  EXPECT_EQ(failed.by_code.code, errc::busy);
  EXPECT_NE(failed.words<error>().find("the words"), std::string::npos);
}

TEST(FailedStart, IsAnErrorWhereTheExceptionHasNoCode) {
  const failed_start failed([] { throw std::runtime_error("of the program"); });
  EXPECT_EQ(failed.by_code.code, errc::invalid_argument);
  EXPECT_EQ(failed.words<std::runtime_error>(), "of the program");
}

TEST(FailedStart, IsAnErrorWhereTheCodeIsNone) {
  const failed_start failed([] { throw std::system_error(std::error_code(), "no error"); });
  EXPECT_EQ(failed.by_code.code, errc::invalid_argument);
  EXPECT_NE(failed.words<std::system_error>().find("no error"), std::string::npos);
}

TEST(FailedStart, IsAWantOfMemory) {
  const failed_start failed([] { throw std::bad_alloc(); });
  EXPECT_EQ(failed.by_code.code, errc::no_memory);
  EXPECT_FALSE(failed.words<std::bad_alloc>().empty());
}

/// Destroys the state before it looks at the error.
struct late_reader {
  using receiver_concept = execution::receiver_tag;
  std::function<void()>* destroy;
  std::string* words;

  void set_value() && noexcept {}
  void set_stopped() && noexcept {}
  void set_error(auto&& why) && noexcept {
    std::string* const into = words;
    (*destroy)();
    *into = words_of(why);
  }
  static std::string words_of(const std::error_code& why) { return why.message(); }
  static std::string words_of(const std::exception_ptr& why) {
    try {
      std::rethrow_exception(why);
    } catch (const std::exception& thrown) {
      return thrown.what();
    }
  }
};

template <class Sender>
std::string words_read_late(Sender sender) {
  using state = decltype(std::move(sender).connect(std::declval<late_reader>()));
  std::unique_ptr<state> held;
  std::function<void()> destroy = [&] { held.reset(); };
  std::string words;
  held.reset(new state(std::move(sender).connect(late_reader{&destroy, &words})));
  held->start();
  EXPECT_FALSE(held);
  return words;
}

TEST(FailedStart, MayBeReadBehindTheStatesEnd) {
  served_region served(100);
  served.connection.wait_connected();
  std::vector<std::byte> into(101);
  EXPECT_EQ(words_read_late(async_read_at(served.region, 0, into)),
            make_error_code(errc::out_of_range).message());
  EXPECT_NE(words_read_late(with_text(async_read_at(served.region, 0, into))).find("101 bytes"),
            std::string::npos);
  const auto throws_words = []() -> request { throw std::runtime_error("of the program"); };
  EXPECT_EQ(words_read_late(with_text(async_start(served.pair.reader, throws_words))),
            "of the program");
}

}  // namespace
}  // namespace ucx::test
