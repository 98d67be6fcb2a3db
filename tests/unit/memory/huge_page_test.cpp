#include "os/huge_page.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "memory/memory_source.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucp/shared_memory.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/memory_region.hpp"

namespace ucx::test {
namespace {

using detail::huge_page;

bool is_aligned(const void* at) { return reinterpret_cast<std::uintptr_t>(at) % huge_page == 0; }

/// Returns the flags of the mapping that `at` lies in, as the system writes them: "hg" wants huge
/// pages, "nh" none.
std::string flags_at(const void* at) {
  std::ifstream list("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(list, line);) {
    std::istringstream words(line);
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    if (words >> std::hex >> begin >> dash >> end && dash == '-') {
      inside = reinterpret_cast<std::uintptr_t>(at) >= begin &&
               reinterpret_cast<std::uintptr_t>(at) < end;
    } else if (inside && line.starts_with("VmFlags:")) {
      return line + ' ';
    }
  }
  return {};
}

bool wants_huge_pages(const void* at) { return flags_at(at).find(" hg ") != std::string::npos; }

/// Whether the system has huge pages for those who ask.
std::string why_none() {
  std::ifstream says("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string all;
  std::getline(says, all);
  const bool some = says && all.find("[never]") == std::string::npos;
  return some ? std::string() : "this system has no transparent huge pages";
}

/// Memory of its own, aligned for huge pages.
class mapped_memory {
 public:
  explicit mapped_memory(std::size_t size) : size_(size + huge_page) {
    begin_ = static_cast<std::byte*>(
        ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const auto at = reinterpret_cast<std::uintptr_t>(begin_);
    bytes_ = {begin_ + (huge_page - at % huge_page) % huge_page, size};
  }
  ~mapped_memory() { ::munmap(begin_, size_); }
  mapped_memory(const mapped_memory&) = delete;
  mapped_memory& operator=(const mapped_memory&) = delete;
  std::span<std::byte> bytes() const { return bytes_; }
  void touch() const {
    for (std::size_t at = 0; at < bytes_.size(); at += 4096) bytes_[at] = std::byte{1};
  }

 private:
  std::size_t size_;
  std::byte* begin_ = nullptr;
  std::span<std::byte> bytes_;
};

TEST(HugePages, AreAskedForWhereAWholeOneFits) {
  if (const std::string why = why_none(); !why.empty()) GTEST_SKIP() << why;
  const detail::aligned_memory large = detail::allocate_zeroed(3 * huge_page);
  EXPECT_TRUE(is_aligned(large.get()));
  EXPECT_TRUE(wants_huge_pages(large.get()));
  for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, huge_page - 1}) {
    const detail::aligned_memory small = detail::allocate_zeroed(size);
    EXPECT_FALSE(wants_huge_pages(small.get())) << size;
  }
}

TEST(HugePages, AreAskedForByRegionsThatAreAllocated) {
  if (const std::string why = why_none(); !why.empty()) GTEST_SKIP() << why;
  const auto made = detail::shared_memory::make(2 * huge_page, true, 1, 1);
  ASSERT_TRUE(made) << made.why().text;
  const auto& file = *made;
  EXPECT_TRUE(is_aligned(file->data()));
  EXPECT_TRUE(wants_huge_pages(file->data()));
  simulated_pair_options options;
  options.owner_context.features = feature::am | feature::wakeup;  // UCX allocates nothing then
  simulated_pair pair(options);
  const memory_region region =
      memory_region::allocate(pair.owner_context, 2 * huge_page, access::write);
  EXPECT_TRUE(is_aligned(region.bytes().data()));
  for (const std::byte each : region.bytes().first(10)) EXPECT_EQ(each, std::byte{0});
}

TEST(HugePages, AreAskedForByPoolsOfTheHosts) {
  if (const std::string why = why_none(); !why.empty()) GTEST_SKIP() << why;
  const auto source = detail::memory_source::of({}).or_throw();
  void* const block = source->allocate(2 * huge_page);
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(is_aligned(block));
  EXPECT_TRUE(wants_huge_pages(block));
  source->free(block, 2 * huge_page);
}

TEST(HugePages, AreForMemoryOfTheProgramsWhatItAsksFor) {
  if (const std::string why = why_none(); !why.empty()) GTEST_SKIP() << why;
  const mapped_memory memory(2 * huge_page);
  EXPECT_FALSE(wants_huge_pages(memory.bytes().data()));
  use_huge_pages(memory.bytes(), huge_pages::advise);
  EXPECT_TRUE(wants_huge_pages(memory.bytes().data()));
  use_huge_pages(memory.bytes(), huge_pages::none);
  EXPECT_NE(flags_at(memory.bytes().data()).find(" nh "), std::string::npos);
  memory.touch();
  EXPECT_EQ(bytes_in_huge_pages(memory.bytes()), 0U);
}

TEST(HugePages, TakeWhatIsThereWhereItIsCollapsed) {
  const mapped_memory memory(2 * huge_page);
  memory.touch();
  std::error_code ec;
  use_huge_pages(memory.bytes(), huge_pages::collapse, ec);
  if (ec) GTEST_SKIP() << "this system collapses nothing: " << ec.message();
  EXPECT_EQ(bytes_in_huge_pages(memory.bytes()), 2 * huge_page);
  EXPECT_EQ(memory.bytes()[4096], std::byte{1});
}

TEST(HugePages, AreOnlyWholeOnes) {
  const mapped_memory memory(2 * huge_page);
  std::error_code ec = errc::timed_out;
  use_huge_pages(memory.bytes().subspan(1, 2 * huge_page - 2), huge_pages::collapse, ec);
  EXPECT_FALSE(ec);
  EXPECT_FALSE(wants_huge_pages(memory.bytes().data()));
  use_huge_pages({}, huge_pages::advise, ec);
  EXPECT_FALSE(ec);
}

TEST(HugePages, OfNoMemoryAreAnError) {
  const auto* const nowhere = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 45U);
  const std::span<std::byte> bytes(const_cast<std::byte*>(nowhere), huge_page);
  EXPECT_THROW(use_huge_pages(bytes, huge_pages::advise), error);
  std::error_code ec;
  use_huge_pages(bytes, huge_pages::advise, ec);
  EXPECT_TRUE(ec == errc::invalid_argument || ec == errc::not_supported) << ec.message();
  EXPECT_FALSE(bytes_in_huge_pages(bytes).has_value());
}

TEST(HugePages, OfAProcessThatIsNotThereAreUnknown) {
  EXPECT_FALSE(detail::huge_bytes("0", 4096, 4096).has_value());
}

}  // namespace
}  // namespace ucx::test
