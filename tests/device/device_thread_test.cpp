// Whose context is current where: on the worker's threads, and on the program's. Row E13 of
// docs/explanation/comparisons.md, as far as it is about devices.
#include <gtest/gtest.h>

#include <cstddef>
#include <future>
#include <system_error>

#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/kind_memory.hpp"
#include "support/transports/message_pair.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

/// Returns the device on which a program that asks for memory on this thread gets it; -1: on none.
int device_here() {
  if (fake_cuda_current() == 0) return -1;
  const auto made = cuda_program::allocate(1);
  const int device = place_of(made.data()).device;
  cuda_program::free(made);
  return device;
}

int device_on_thread_of(worker& driven) {
  std::promise<int> found;
  driven.post([&] { found.set_value(device_here()); });
  return found.get_future().get();
}

message_pair_options with_threads() {
  message_pair_options options;
  options.over = route::tcp_by_listener;
  options.sender = options.receiver = progress_mode::sleeping_thread;
  return options;
}

/// Sends a long message out of memory of a device into that of another, by the workers' threads.
void pass(message_pair& pair, kind_memory& from, kind_memory& into) {
  request receive = pair.receiver().start_receive(1, into.bytes());
  request send = pair.sender->start_send(1, from.bytes());
  std::error_code ec;
  send.wait(ec);
  EXPECT_FALSE(ec) << ec.message();
  receive.wait(ec);
  EXPECT_FALSE(ec) << ec.message();
}

TEST(DeviceThread, KeepsItsContextAcrossCopies) {
  const cuda_program program;
  message_pair_options options = with_threads();
  options.defaults.on_thread_start = [] { cuda_program::use(1); };
  message_pair pair(options);
  kind_memory from(memory_kind::cuda, 2 * mib, 1);
  kind_memory into(memory_kind::cuda, 2 * mib);
  EXPECT_EQ(device_on_thread_of(pair.receiver()), 1);
  pass(pair, from, into);
  EXPECT_TRUE(into.holds(1));
  EXPECT_EQ(device_on_thread_of(pair.receiver()), 1);
  EXPECT_EQ(device_on_thread_of(*pair.sender_worker), 1);
  EXPECT_EQ(device_here(), 0);
}

TEST(DeviceThread, HasNoContextWhereItsProgramGaveItNone) {
  const cuda_program program;
  message_pair pair(with_threads());
  kind_memory from(memory_kind::cuda, 2 * mib, 1);
  kind_memory into(memory_kind::cuda_managed, 2 * mib);
  pass(pair, from, into);
  EXPECT_TRUE(into.holds(1));
  EXPECT_EQ(device_on_thread_of(pair.receiver()), -1);
  EXPECT_EQ(device_on_thread_of(*pair.sender_worker), -1);
}

TEST(DeviceThread, OfTheProgramsThatDrivesKeepsItsContext) {
  const cuda_program program;
  kind_memory from(memory_kind::cuda, 2 * mib, 1);
  cuda_program::use(1);
  kind_memory into(memory_kind::cuda, 2 * mib);
  message_pair_options options = with_threads();
  options.sender = progress_mode::caller;
  message_pair pair(options);
  EXPECT_EQ(place_of(from.bytes().data()).device, 0);
  EXPECT_EQ(place_of(into.bytes().data()).device, 1);
  pass(pair, from, into);
  EXPECT_TRUE(into.holds(1));
  EXPECT_EQ(device_here(), 1);
}

TEST(DeviceThread, MayInitialiseCudaBehindTheConnection) {
  fake_cuda_reset(2, 1);
  message_pair pair(with_threads());
  std::vector<std::byte> into(1000);
  request receive = pair.receiver().start_receive(1, into);
  pair.sender->send(1, pattern(1000));
  receive.wait();
  EXPECT_TRUE(holds_pattern(into));
  EXPECT_EQ(fake_cuda_calls("cuInit"), 0U) << "what is the host's needs no CUDA";
  EXPECT_EQ(fake_cuda_contexts(), 0U);

  cuda_program::use(1);
  {
    kind_memory from(memory_kind::cuda, 2 * mib, 2);
    kind_memory other(memory_kind::cuda, 2 * mib);
    pass(pair, from, other);
    EXPECT_TRUE(other.holds(2));
  }
  fake_cuda_reset(0, 0);
}

}  // namespace
}  // namespace ucx::test
