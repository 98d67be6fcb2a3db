#include "ucx/memory_place.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "os/huge_page.hpp"
#include "ucx/error.hpp"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // of Linux 6.1
#endif

namespace ucx {
namespace {

int advice_of(huge_pages wanted) noexcept {
  if (wanted == huge_pages::none) return MADV_NOHUGEPAGE;
  return wanted == huge_pages::advise ? MADV_HUGEPAGE : MADV_COLLAPSE;
}

std::error_code meaning_of(int failure, huge_pages wanted) noexcept {
  if (failure == ENOMEM)
    return wanted == huge_pages::collapse ? errc::busy : errc::invalid_argument;
  if (failure == EAGAIN || failure == EBUSY) return errc::busy;
  if (failure == EFAULT) return errc::invalid_argument;
  return errc::not_supported;
}

std::error_code ask_for(std::span<std::byte> bytes, huge_pages wanted) noexcept {
  // Whole huge pages: of a page that is only partly theirs the rest is somebody else's.
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t first =
      (begin + detail::huge_page - 1) / detail::huge_page * detail::huge_page;
  const std::uintptr_t last = (begin + bytes.size()) / detail::huge_page * detail::huge_page;
  if (last <= first) return {};
  auto* const from = bytes.data() + (first - begin);
  if (wanted == huge_pages::collapse) ::madvise(from, last - first, MADV_HUGEPAGE);
  if (::madvise(from, last - first, advice_of(wanted)) == 0) return {};
  return meaning_of(errno, wanted);
}

}  // namespace

void use_huge_pages(std::span<std::byte> bytes, huge_pages wanted, std::error_code& ec) {
  detail::end_with(ask_for(bytes, wanted), ec, [bytes] {
    return "asking for huge pages for " + std::to_string(bytes.size()) + " bytes";
  });
}

std::optional<std::uint64_t> bytes_in_huge_pages(std::span<const std::byte> bytes) {
  return detail::huge_bytes("self", reinterpret_cast<std::uintptr_t>(bytes.data()), bytes.size());
}

}  // namespace ucx
