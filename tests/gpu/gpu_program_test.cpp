// A program that uses the driver itself, beside the library: its streams, contexts, graphs, and
// what it frees.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <system_error>
#include <vector>

#include "gpu/driver_calls.hpp"
#include "gpu/gpu_memory.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

constexpr std::size_t size = 5'000'003;

std::vector<std::byte> content(std::span<const std::byte> bytes) {
  std::vector<std::byte> seen(bytes.size());
  copy_memory(seen.data(), bytes.data(), bytes.size());
  return seen;
}

/// A server's memory of the host, and the driver's own here.
class GpuProgram : public testing::Test {
 protected:
  ~GpuProgram() override { driver_program::free(tensor_); }

  const driver_program program_;
  const std::span<std::byte> tensor_ = driver_program::allocate(size);
  buffer owned_ = filled(memory_kind::host, 1, size);
  ucx_server server_;
  publication published_ = server_.publish("host", owned_.bytes(), access::read_write);
  client client_{server_.url()};
  remote_region region_ = client_.open("host", access::read_write);
};

TEST_F(GpuProgram, WritesWhatItsStreamHasMade) {
  CUstream_st* const stream = driver_program::make_stream();
  for (unsigned char value = 1; value < 20; ++value) {
    driver_program::set(tensor_, value, stream);
    region_.write_at(0, tensor_, {.cuda_stream = stream});
    region_.flush();
    ASSERT_EQ(std::count(owned_.bytes().begin(), owned_.bytes().end(), std::byte{value}),
              static_cast<std::ptrdiff_t>(size));
  }
  driver_program::end_stream(stream);
}

TEST_F(GpuProgram, ReadsBehindWhatItsStreamHasToDo) {
  CUstream_st* const stream = driver_program::make_stream();
  for (unsigned char value = 1; value < 20; ++value) {
    driver_program::set(tensor_, value, stream);
    region_.read_at(0, tensor_, {.cuda_stream = stream});
    ASSERT_TRUE(holds(tensor_, 1)) << "the stream's work came later";
  }
  stream_options options;
  options.cuda_stream = stream;
  ucx::istream in(client_.open("host", access::read), options);
  in.get();
  driver_program::set(tensor_, 7, stream);
  in.read(reinterpret_cast<char*>(tensor_.data()), 100);
  ASSERT_TRUE(in);
  EXPECT_TRUE(holds(tensor_.first(100), 1, 1));
  driver_program::wait_for(stream);
  driver_program::end_stream(stream);
}

TEST_F(GpuProgram, HasItsStreamWaitForWhatIsRead) {
  CUstream_st* const stream = driver_program::make_stream();
  const std::span<std::byte> copied = driver_program::allocate(size);
  worker_options options;
  options.progress = progress_mode::sleeping_thread;
  client driven(server_.url(), client_options{.worker = options});
  remote_region region = driven.open("host", access::read_write);
  for (unsigned char value = 1; value < 20; ++value) {
    driver_program::set(tensor_, value, stream);
    request read = region.start_read_at(0, tensor_, {.cuda_stream = stream});
    std::error_code ec;
    read.enqueue_wait(stream, ec);
    if (ec == errc::not_supported) GTEST_SKIP() << "this driver has no stream wait for memory";
    ASSERT_FALSE(ec) << ec.message();
    driver_program::copy(copied, tensor_, stream);
    driver_program::set(tensor_, 0, stream);
    driver_program::wait_for(stream);
    ASSERT_TRUE(read.done());
    ASSERT_FALSE(read.error()) << read.error().message();
    ASSERT_TRUE(holds(copied, 1)) << "the stream went on too early";
  }
  driver_program::free(copied);
  driver_program::end_stream(stream);
}

TEST_F(GpuProgram, HasContextsOfItsOwn) {
  const driver_program other(driver_program::context::own);
  const std::span<std::byte> theirs = driver_program::allocate(size);
  {
    client brief(server_.url());  // a context has to live as long as the worker that used it
    brief.open("host", access::read).read_at(0, theirs);
    EXPECT_TRUE(holds(theirs, 1));
    const publication lent = server_.publish("own", theirs, access::read);
    brief.open("own", access::read).read_at(0, tensor_);
    EXPECT_TRUE(holds(tensor_, 1));
  }
  driver_program::free(theirs);
}

TEST_F(GpuProgram, FreesWhatIsExposed) {
  const std::span<std::byte> freed = driver_program::allocate(size);
  const publication lent = server_.publish("freed", freed, access::read_write);
  remote_region region = client_.open("freed", access::read_write);
  std::vector<std::byte> into(size);
  region.read_at(0, into);
  driver_program::free(freed);
  std::error_code ec;
  region.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::io_error) << ec.message();
  // Most drivers give the same address out again.
  const std::span<std::byte> next = driver_program::allocate(size);
  region.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::io_error) << ec.message();
  region_.read_at(0, next);
  EXPECT_TRUE(holds(next, 1));
  driver_program::free(next);
}

TEST_F(GpuProgram, CapturesAGraphMeanwhile) {
  using begin_capture = int(CUstream_st*, int);
  using end_capture = int(CUstream_st*, void**);
  auto* const begin = driver_call<begin_capture>("cuStreamBeginCapture_v2");
  auto* const end = driver_call<end_capture>("cuStreamEndCapture");
  if (begin == nullptr || end == nullptr) GTEST_SKIP() << "this driver captures nothing";
  CUstream_st* const stream = driver_program::make_stream();
  constexpr int global = 0;
  ASSERT_EQ(begin(stream, global), 0);
  driver_program::set(tensor_, 9, stream);  // in the graph, and not done
  std::error_code ec;
  const buffer more = filled(memory_kind::host, 2, size);
  region_.write_at(0, more.bytes());
  region_.flush();
  region_.read_at(0, tensor_, {}, ec);
  EXPECT_FALSE(ec) << ec.message();
  void* graph = nullptr;
  EXPECT_EQ(end(stream, &graph), 0) << "the capture was spoiled";
  if (graph != nullptr) driver_call<int(void*)>("cuGraphDestroy")(graph);
  driver_program::end_stream(stream);
  EXPECT_TRUE(holds(tensor_, 2));
}

TEST_F(GpuProgram, AllocatesByTheServer) {
  for (const memory_kind kind : {memory_kind::cuda, memory_kind::cuda_managed}) {
    const publication own = server_.allocate("own", size, access::read_write, {kind, 0});
    EXPECT_EQ(client_.stat("own").kind, kind);
    EXPECT_EQ(client_.stat("own").device, 0);
    remote_region region = client_.open("own", access::read_write);
    region.read_at(0, tensor_);
    EXPECT_EQ(content(tensor_), std::vector<std::byte>(size));
    const buffer from = filled(kind, 4, size);
    region.write_at(0, from.bytes());
    region.flush();
    region.read_at(0, tensor_);
    EXPECT_TRUE(holds(tensor_, 4));
  }
}

/// Returns the number of the step that went wrong in a child that has its parent's pointers.
int use_inherited(std::span<std::byte> tensor) {
  std::vector<std::byte> host(10);
  std::error_code ec;
  if (place_of(tensor.data()).kind != memory_kind::other) return 1;
  if (place_of(host.data()) != memory_place()) return 2;
  copy_memory(host.data(), tensor.data(), 10, {}, ec);
  if (ec != errc::not_supported) return 3;
  const memory_pool pool({memory_kind::cuda, 0}, {}, ec);
  return ec == errc::not_supported ? 0 : 4;
}

TEST_F(GpuProgram, HasChildrenThatAreRefused) {
  GTEST_FLAG_SET(death_test_style, "fast");
  EXPECT_EXIT(std::_Exit(use_inherited(tensor_)), testing::ExitedWithCode(0), "");
  region_.read_at(0, tensor_);
  EXPECT_TRUE(holds(tensor_, 1));
}

}  // namespace
}  // namespace ucx::test
