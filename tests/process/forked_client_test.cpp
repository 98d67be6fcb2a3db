// A child of fork() that has its parent's client, over each scheme: every request of it fails at
// once, nothing waits, and the parent goes on.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "support/process/forked_child.hpp"
#include "support/process/test_peer.hpp"
#include "support/transports/client_requests.hpp"
#include "support/transports/url_scheme.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/request.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

class ForkedClient : public testing::TestWithParam<std::string> {
 protected:
  ForkedClient() : by_{GetParam(), secrets_ / ""} {
    files_.make("file", "content");
    where_ = url(peer_.ask("serve_by " + by_.name + ' ' + by_.folder.string()));
    peer_.ask("publish_store " + (files_ / "").string());
    client_options options{.context = by_.context()};
    if (!by_.is_of_ucx()) options.context.transports.clear();  // the URL says it
    client_.emplace(where_, options);
    at_.over = &*client_;
    at_.open_files();
  }

  /// Every kind of request, by its name.
  static std::vector<request_kind> kinds() {
    std::vector<request_kind> all = requests_of_client();
    for (request_kind& each : requests_of_file()) all.push_back(std::move(each));
    return all;
  }

  const temporary_directory secrets_;
  const temporary_directory files_;
  const url_scheme by_;
  test_peer peer_{"tcp"};
  url where_;
  std::optional<client> client_;
  request_subjects at_;
};

TEST_P(ForkedClient, IsToldByEveryRequest) {
  const auto child = [this](faults_of_child& wrong) {
    for (const request_kind& each : kinds()) {
      request asked = each.start(at_);
      wrong.unless_inherited(asked.error(), each.name);
      std::error_code ec;
      asked.wait(ec);
      wrong.unless_inherited(ec, std::string("the wait for ") + each.name);
    }
    client made;
    wrong.unless_inherited(client::start_connect(client_->worker(), where_, made).error(),
                           "a new connection");
    wrong.unless_inherited(client_->status(), "the status");
    at_.close_files();
    client_.reset();
  };
  EXPECT_EQ(status_of_child(child), 0);
  // The child has changed nothing.
  EXPECT_EQ(client_->list().size(), 1U);
  EXPECT_EQ(client_->stat("file").size, 7U);
  client_->commit(at_.written);
  at_.opened.close();
  EXPECT_EQ(content_of(files_ / "opened").size(), at_.text.size());
  EXPECT_EQ(content_of(files_ / "written").size(), at_.text.size());
}

/// Requests that the parent has under way are its own.
TEST_P(ForkedClient, CanNotWaitForItsParentsRequests) {
  for (const request_kind& each : kinds()) {
    SCOPED_TRACE(each.name);
    files_.make("file", "content");
    std::filesystem::remove_all(files_ / "made");
    at_.open_files();
    peer_.process().stop();
    request asked = each.start(at_);
    const bool was_done = asked.done();
    const auto child = [&](faults_of_child& wrong) {
      std::error_code ec;
      if (!was_done) {
        asked.wait(ec);
        wrong.unless_inherited(ec, "a wait");
        asked.wait_for(1s, ec);
        wrong.unless_inherited(ec, "a wait for a while");
        asked.cancel_on({});
        asked.cancel();
        asked.then([&](std::error_code told) { ec = told; });
        wrong.unless_inherited(ec, "a handler");
      }
      asked = {};
    };
    EXPECT_EQ(status_of_child(child), 0);
    peer_.process().resume();
    std::error_code ec;
    asked.wait(ec);
    EXPECT_FALSE(ec) << ec.message();
    at_.close_files();
    client_->remove("opened", {}, ec);
  }
}

std::string name_of_forked(const testing::TestParamInfo<std::string>& each) { return each.param; }

INSTANTIATE_TEST_SUITE_P(, ForkedClient, testing::Values("ucx", "socket", "unix"), name_of_forked);
#if UCXIO_HAS_TLS
INSTANTIATE_TEST_SUITE_P(ByTls, ForkedClient, testing::Values("tls"), name_of_forked);
#endif

}  // namespace
}  // namespace ucx::test
