#include "ucx/memory_kind.hpp"

namespace ucx {

std::string_view to_string(memory_kind kind) noexcept {
  switch (kind) {
    case memory_kind::host:
      return "host";
    case memory_kind::cuda:
      return "cuda";
    case memory_kind::cuda_managed:
      return "cuda_managed";
    case memory_kind::rocm:
      return "rocm";
    case memory_kind::cuda_pinned:
      return "cuda_pinned";
    case memory_kind::other:
      break;
  }
  return "other";
}

}  // namespace ucx
