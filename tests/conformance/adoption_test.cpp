// Contexts and workers of UCX that another library of the program made, by the row A7 of
// docs/explanation/comparisons.md. What goes over them is tested with the other rows, in the
// instances "Adopted".
#include <ucp/api/ucp.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/transports/connection_conformance.hpp"
#include "support/transports/event_loop.hpp"
#include "support/transports/foreign_ucx.hpp"
#include "ucx/access.hpp"
#include "ucx/error.hpp"
#include "ucx/message.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// A context of somebody else's, who gives it back at the end.
class foreign_context {
 public:
  explicit foreign_context(const context_options& alike = loopback_tcp(),
                           foreign_threads used_by = foreign_threads::any)
      : alike_(alike), made_(make_foreign_context(alike, used_by)) {}
  ~foreign_context() { give_back(made_); }
  foreign_context(const foreign_context&) = delete;
  foreign_context& operator=(const foreign_context&) = delete;

  context borrow() const { return context::adopt(made_, told_of(alike_, ownership::borrow)); }
  ucp_worker* make_worker(foreign_threads used_by) const {
    return make_foreign_worker(made_, used_by);
  }

 private:
  context_options alike_;
  ucp_context* made_;
};

/// Drives both until `done()`, unless somebody else does; returns whether that was in time.
template <class Condition>
bool drive(worker& one, worker& other, Condition done) {
  const auto end = std::chrono::steady_clock::now() + 40s;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    for (worker* each : {&one, &other}) {
      if (each->mode() != progress_mode::external) each->progress();
    }
  }
  return true;
}

void close(endpoint& connection, worker& one, worker& other) {
  request closing = connection.start_close();
  EXPECT_TRUE(drive(one, other, [&] { return closing.done(); }));
  EXPECT_FALSE(closing.error()) << closing.error().message();
}

class ConformanceAAdopted : public testing::TestWithParam<progress_mode> {};

INSTANTIATE_TEST_SUITE_P(Modes, ConformanceAAdopted,
                         testing::Values(progress_mode::caller, progress_mode::polling_thread,
                                         progress_mode::sleeping_thread, progress_mode::external),
                         [](const auto& chosen) { return name_of(chosen.param); });

TEST_P(ConformanceAAdopted, A7_AdoptedWorkersRunInEveryMode) {
  for (const foreign_threads used_by : {foreign_threads::one_by_one, foreign_threads::any}) {
    const foreign_context foreign;
    std::vector<std::byte> memory = pattern(300'000, 1);
    const context borrowed = foreign.borrow();
    const memory_region exposed(borrowed, std::span<std::byte>(memory), access::read);
    worker adopted = worker::adopt(
        borrowed, foreign.make_worker(used_by), ownership::take,
        {.progress = GetParam(), .thread_mode = thread_mode::multi, .name = "adopted"});
    std::optional<event_loop> loop;
    if (GetParam() == progress_mode::external) loop.emplace(adopted);
    const listener door(adopted, any_port);
    const context ours(loopback_tcp());
    worker other(ours);
    endpoint connection(other, door.address(), {.wait = connect_wait::none});
    ASSERT_TRUE(
        drive(other, adopted, [&] { return connection.state() != connection_state::connecting; }));
    EXPECT_EQ(connection.report().peer_name, "adopted");
    remote_region region(connection, exposed.descriptor(),
                         {.transfer_method = transfer_method::message});
    std::vector<std::byte> into(memory.size());
    request read = region.start_read_at(0, into);
    EXPECT_TRUE(drive(other, adopted, [&] { return read.done(); }));
    EXPECT_TRUE(holds_pattern(into, 1));
    for (const std::size_t size : {std::size_t{10}, std::size_t{1} << 20U}) {
      const std::vector<std::byte> bytes = pattern(size, 2);
      std::vector<std::byte> place(size);
      request receive = adopted.start_receive(size, place);
      request send = connection.start_send(size, bytes);
      EXPECT_TRUE(drive(other, adopted, [&] { return send.done() && receive.done(); }));
      EXPECT_FALSE(receive.error()) << receive.error().message();
      EXPECT_TRUE(holds_pattern(place, 2));
    }
    close(connection, other, adopted);
  }
}

TEST(ConformanceA, A7_WorkersOfOneThreadAreRefusedToSeveral) {
  for (const foreign_threads whole : {foreign_threads::one, foreign_threads::any}) {
    const foreign_context foreign(loopback_tcp(), whole);
    const context borrowed = foreign.borrow();
    // Of a context for one thread no worker can be for more.
    const bool is_one = whole == foreign_threads::one;
    ucp_worker* const made =
        foreign.make_worker(is_one ? foreign_threads::any : foreign_threads::one);
    for (const worker_options& refused :
         {worker_options{.progress = progress_mode::polling_thread},
          worker_options{.progress = progress_mode::sleeping_thread},
          worker_options{.thread_mode = thread_mode::multi}}) {
      std::error_code ec;
      const worker none = worker::adopt(borrowed, made, ownership::take, refused, ec);
      EXPECT_EQ(ec, errc::not_supported);
    }
    // It was left to its maker, who lets one thread have it.
    const worker adopted = worker::adopt(borrowed, made, ownership::take);
    EXPECT_EQ(adopted.native_handle(), made);
    EXPECT_FALSE(adopted.address().empty());
  }
}

TEST(ConformanceA, A7_FeaturesThatWereNotToldAreMissing) {
  context_options alike = loopback_tcp();
  alike.features = feature::rma;
  const foreign_context foreign(alike);
  const context borrowed = foreign.borrow();
  EXPECT_EQ(borrowed.features(), feature::rma);
  ucp_worker* const made = foreign.make_worker(foreign_threads::any);
  std::error_code ec;
  const worker none = worker::adopt(borrowed, made, ownership::take,
                                    {.progress = progress_mode::sleeping_thread}, ec);
  EXPECT_EQ(ec, errc::feature_disabled);
  worker adopted = worker::adopt(borrowed, made, ownership::take);
  EXPECT_EQ(adopted.event_fd(), -1);
  EXPECT_THROW(adopted.on_message(1, [](message) {}), error);
}

TEST(ConformanceA, A7_MemoryIsSharedUnlessItIsNotToBe) {
  for (const bool shares : {true, false}) {
    context_options alike = loopback_tcp();
    alike.share_memory = shares;
    const context owners = adopt_context(alike);
    const context readers = adopt_context(alike);
    const worker owner = adopt_worker(owners, {.progress = progress_mode::sleeping_thread});
    const worker reader = adopt_worker(readers, {});
    const listener door(owner, any_port);
    const memory_region owned = memory_region::allocate(owners, 4096, access::read);
    const endpoint connection(reader, door.address());
    remote_region region(connection, owned.descriptor());
    EXPECT_EQ(region.transfer_method(),
              shares ? transfer_method::mapped : transfer_method::message);
    std::vector<std::byte> into(4096);
    fill_pattern(owned.bytes(), 3);
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into, 3));
  }
}

/// Bytes that a handler of UCX's own was called with.
struct heard {
  std::vector<std::byte> bytes;
  bool all = false;
};

::ucs_status_t hear(void* told, const void*, std::size_t, void* data, std::size_t length,
                    const ::ucp_am_recv_param_t*) {
  auto& here = *static_cast<heard*>(told);
  const auto* const first = static_cast<const std::byte*>(data);
  here.bytes.assign(first, first + length);
  here.all = true;
  return UCS_OK;
}

// The library that made the worker uses it for messages of its own, which are not ours.
TEST(ConformanceA, A7_ActiveMessagesOfItsMakerGoOn) {
  constexpr unsigned number = 3;
  const foreign_context foreign;
  const context borrowed = foreign.borrow();
  ucp_worker* const made = foreign.make_worker(foreign_threads::one);
  heard here;
  ::ucp_am_handler_param_t handler = {};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = number;
  handler.cb = &hear;
  handler.arg = &here;
  ASSERT_EQ(::ucp_worker_set_am_recv_handler(made, &handler), UCS_OK);
  worker receiver = worker::adopt(borrowed, made, ownership::take);
  const context senders = adopt_context(loopback_tcp());
  worker sender = adopt_worker(senders, {});
  endpoint connection(sender, receiver.address());
  const std::vector<std::byte> bytes = pattern(1000, 4);
  std::vector<std::byte> place(1000);
  for (int round = 0; round < 3; ++round) {
    here = {};
    // Theirs and ours by turns, over the same connection.
    const ::ucp_request_param_t params = {};
    ::ucs_status_ptr_t theirs = ::ucp_am_send_nbx(connection.native_handle(), number, nullptr, 0,
                                                  bytes.data(), bytes.size(), &params);
    ASSERT_FALSE(UCS_PTR_IS_ERR(theirs)) << ::ucs_status_string(UCS_PTR_STATUS(theirs));
    request receive = receiver.start_receive(1, place);
    request send = connection.start_send(1, bytes);
    EXPECT_TRUE(drive(sender, receiver, [&] {
      const bool sent = !UCS_PTR_IS_PTR(theirs) || ::ucp_request_check_status(theirs) == UCS_OK;
      return sent && here.all && send.done() && receive.done();
    }));
    if (UCS_PTR_IS_PTR(theirs)) ::ucp_request_free(theirs);
    EXPECT_TRUE(holds_pattern(here.bytes, 4));
    EXPECT_TRUE(holds_pattern(place, 4));
    EXPECT_FALSE(receive.error());
  }
  close(connection, sender, receiver);
}

/// Returns the outcome of a request of UCX's, driven by UCX alone.
::ucs_status_t end_of(ucp_worker* driven, ::ucs_status_ptr_t started) {
  if (!UCS_PTR_IS_PTR(started)) return UCS_PTR_RAW_STATUS(started);
  while (::ucp_request_check_status(started) == UCS_INPROGRESS) ::ucp_worker_progress(driven);
  const ::ucs_status_t ended = ::ucp_request_check_status(started);
  ::ucp_request_free(started);
  return ended;
}

class ConformanceABorrowed : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Over, ConformanceABorrowed, testing::Values("tcp", "posix"),
                         [](const auto& chosen) { return std::string(chosen.param); });

/// Its maker drives it, destroys it, and uses it between and afterwards.
TEST_P(ConformanceABorrowed, A7_BorrowedWorkersStayTheirMakers) {
  context_options alike = loopback_tcp();
  if (GetParam() != std::string("tcp")) {
    alike = {};
    alike.transports = {"posix", "cma", "self"};
  }
  const foreign_context foreign(alike);
  ucp_worker* const made = foreign.make_worker(foreign_threads::one_by_one);
  std::vector<std::byte> memory = pattern(300'000, 1);
  for (int round = 0; round < 3; ++round) {
    const context borrowed = foreign.borrow();
    const memory_region exposed(borrowed, std::span<std::byte>(memory), access::read);
    const context ours(alike);
    worker other(ours, {.progress = progress_mode::polling_thread});
    std::optional<worker> lent(worker::adopt(borrowed, made, ownership::borrow));
    std::error_code ec;
    const worker twice = worker::adopt(foreign.borrow(), made, ownership::borrow, {}, ec);
    EXPECT_EQ(ec, errc::already_exists) << "and the first one hears its peers";
    endpoint in(other, lent->address(), {.wait = connect_wait::none});
    ASSERT_TRUE(drive(*lent, *lent, [&] { return in.state() != connection_state::connecting; }));
    std::vector<std::byte> into(memory.size());
    remote_region region(in, exposed.descriptor(), {.transfer_method = transfer_method::message});
    const request read = region.start_read_at(0, into);
    while (!read.done()) ::ucp_worker_progress(made);
    EXPECT_TRUE(holds_pattern(into, 1));
    {
      endpoint out(*lent, other.address());
      out.send(1, pattern(100));
      lent.reset();
    }
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (!in.status() && std::chrono::steady_clock::now() < until) ::ucp_worker_progress(made);
    EXPECT_EQ(in.status(), errc::closed_by_peer);
    // It reaches itself by UCX's calls.
    ::ucp_ep_params_t params = {};
    ::ucp_address_t* address = nullptr;
    std::size_t length = 0;
    ASSERT_EQ(::ucp_worker_get_address(made, &address, &length), UCS_OK);
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = address;
    ::ucp_ep_h self = nullptr;
    ASSERT_EQ(::ucp_ep_create(made, &params, &self), UCS_OK);
    ::ucp_worker_release_address(made, address);
    const ::ucp_request_param_t plain = {};
    EXPECT_EQ(end_of(made, ::ucp_ep_flush_nbx(self, &plain)), UCS_OK);
    EXPECT_EQ(end_of(made, ::ucp_ep_close_nbx(self, &plain)), UCS_OK);
  }
  give_back(made);
}

}  // namespace
}  // namespace ucx::test
