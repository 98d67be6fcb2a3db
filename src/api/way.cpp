#include "ucx/way.hpp"

namespace ucx {

std::string_view to_string(way value) noexcept {
  switch (value) {
    case way::automatic:
      return "automatic";
    case way::message:
      return "message";
    case way::rma:
      return "rma";
    case way::mapped:
      return "mapped";
    case way::cma:
      return "cma";
    case way::cuda_ipc:
      return "cuda_ipc";
  }
  return "unknown";
}

}  // namespace ucx
