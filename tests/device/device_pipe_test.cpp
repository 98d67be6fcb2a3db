// Pipes out of, and into, the memory of a device.
#include <gtest/gtest.h>

#include <cstddef>
#include <future>
#include <ios>
#include <string>

#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/kind_memory.hpp"
#include "support/streams/pipe_place.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

class device_pipes : public pipe_place {
 protected:
  explicit device_pipes(transfer_method moved)
      : pipe_place(moved == transfer_method::mapped ? pipe_route::mapped : pipe_route::message) {}

  /// Writes all of `from` and reads as much into `into`, each on a thread of its own.
  void pass(kind_memory& from, kind_memory& into) {
    const auto size = static_cast<std::streamsize>(from.bytes().size());
    const auto writing = std::async(std::launch::async, [&] {
      out_->write(from.characters(), size);
      out_->flush();
    });
    in_->read(into.characters(), size);
    writing.wait();
    ASSERT_TRUE(*in_) << in_->error_message();
    ASSERT_TRUE(*out_) << out_->error_message();
  }

  const cuda_program program_;
};

/// Over one pipe, of each kind of memory.
class DevicePipe : public device_pipes, public testing::WithParamInterface<transfer_method> {
 protected:
  DevicePipe() : device_pipes(GetParam()) {}
};

TEST_P(DevicePipe, CarriesEachByteWithOneCopyAtEachEnd) {
  connect();
  for (const memory_kind kind : every_kind) {
    for (const std::size_t size :
         {std::size_t{1}, std::size_t{1000}, std::size_t{300'000}, std::size_t{5'000'000}}) {
      SCOPED_TRACE(to_string(kind));
      kind_memory from(kind, size, size);
      kind_memory into(kind, size);
      const copied_bytes copied;
      pass(from, into);
      EXPECT_EQ(copied.from_device(), is_of_driver(kind) ? size : 0);
      EXPECT_EQ(copied.to_device(), is_of_driver(kind) ? size : 0);
      EXPECT_TRUE(into.holds(size)) << size;
    }
  }
  out_->close();
  EXPECT_TRUE(*out_) << out_->error_message();
  EXPECT_EQ(in_->get(), std::char_traits<char>::eof());
  EXPECT_FALSE(in_->bad());
}

TEST_P(DevicePipe, GoesOnBetweenTextAndMemory) {
  connect();
  for (const memory_kind kind : every_kind) {
    SCOPED_TRACE(to_string(kind));
    kind_memory from(kind, 5000, 3);
    kind_memory into(kind, 5000);
    *out_ << "5000 bytes\n";
    out_->write(from.characters(), 5000);
    *out_ << "end\n" << std::flush;
    std::string line;
    std::getline(*in_, line);
    EXPECT_EQ(line, "5000 bytes");
    in_->read(into.characters(), 5000);
    EXPECT_TRUE(into.holds(3));
    in_->unget();
    EXPECT_EQ(in_->get(), std::to_integer<int>(pattern_byte(4999, 3)));
    std::getline(*in_, line);
    EXPECT_EQ(line, "end");
  }
  kind_memory memory(memory_kind::cuda, 5000, 4);
  out_->write(memory.characters(), 100);
  out_->close();
  memory.fill(99);
  in_->read(memory.characters(), 5000);
  EXPECT_EQ(in_->gcount(), 100);
  EXPECT_TRUE(in_->eof());
  EXPECT_FALSE(in_->bad());
  EXPECT_TRUE(memory.holds(4, 100));
}

INSTANTIATE_TEST_SUITE_P(Ways, DevicePipe,
                         testing::Values(transfer_method::message, transfer_method::mapped),
                         [](const auto& instance) {
                           return std::string(to_string(instance.param));
                         });

class DevicePipeInTrouble : public device_pipes,
                            public testing::WithParamInterface<transfer_method> {
 protected:
  DevicePipeInTrouble() : device_pipes(GetParam()) {}
};

TEST_P(DevicePipeInTrouble, FailedCopyLeavesBytesToTheNextRead) {
  connect();
  kind_memory into(memory_kind::cuda, 1000);
  *out_ << text_of(1000, 5) << std::flush;
  fake_cuda_fail("copy", 0, 1, 719);
  in_->read(into.characters(), 1000);
  EXPECT_TRUE(in_->bad());
  EXPECT_FALSE(in_->eof());
  EXPECT_EQ(in_->error(), errc::io_error);
  EXPECT_NE(in_->error_message().find("reading into a device"), std::string::npos);
  in_->clear();
  in_->read(into.characters(), 1000);
  EXPECT_TRUE(*in_) << in_->error_message();
  EXPECT_TRUE(into.holds(5));
}

TEST_P(DevicePipeInTrouble, FailedSecondCopyLeavesBoth) {
  connect();
  kind_memory into(memory_kind::cuda, 1000);
  const std::string text = text_of(1500, 5);
  *out_ << text.substr(0, 400) << std::flush << text.substr(400) << std::flush;
  in_->get();  // so that both are messages in this process
  in_->unget();
  fake_cuda_fail("copy", 1, 1, 719);
  in_->read(into.characters(), 1000);
  EXPECT_EQ(in_->error(), errc::io_error);
  in_->clear();
  std::string came(1500, '\0');
  in_->read(came.data(), 1500);
  EXPECT_TRUE(*in_) << in_->error_message();
  EXPECT_TRUE(came == text);
}

TEST_P(DevicePipeInTrouble, FailedWriteSendsNothingOfIt) {
  connect();
  for (const std::size_t size : {std::size_t{1000}, std::size_t{2'000'000}}) {
    kind_memory from(memory_kind::cuda, size, 6);
    kind_memory into(memory_kind::cuda, size);
    fake_cuda_fail("copy", 0, 1, 719);
    out_->write(from.characters(), static_cast<std::streamsize>(size));
    EXPECT_TRUE(out_->bad());
    EXPECT_EQ(out_->error(), errc::io_error);
    out_->clear();
    pass(from, into);
    EXPECT_TRUE(into.holds(6));
  }
  out_->close();
  EXPECT_TRUE(*out_) << out_->error_message();
  EXPECT_EQ(in_->get(), std::char_traits<char>::eof());
  EXPECT_FALSE(in_->bad());
}

TEST_P(DevicePipeInTrouble, UncopiedBytesAreNoCleanEnd) {
  connect();
  kind_memory from(memory_kind::cuda, 1000, 6);
  fake_cuda_fail("copy", 0, 1, 719);
  out_->write(from.characters(), 1000);
  EXPECT_TRUE(out_->bad());
  out_->clear();
  out_->close();
  EXPECT_FALSE(*out_);
  EXPECT_EQ(out_->error(), errc::io_error);
  EXPECT_EQ(in_->get(), std::char_traits<char>::eof());
  EXPECT_TRUE(in_->bad());
}

INSTANTIATE_TEST_SUITE_P(Ways, DevicePipeInTrouble,
                         testing::Values(transfer_method::message, transfer_method::mapped),
                         [](const auto& instance) {
                           return std::string(to_string(instance.param));
                         });

}  // namespace
}  // namespace ucx::test
