#include "closing_connections.hpp"

#include <exception>
#include <system_error>
#include <utility>

namespace ucxio_python {

void closing_connections::close(ucx::endpoint gone) noexcept {
  try {
    ucx::request closing = gone.start_close();
    const std::lock_guard guard(lock_);
    std::erase_if(closing_, [](const ucx::request& each) { return each.done(); });
    if (!closing.done()) closing_.push_back(std::move(closing));
  } catch (const std::exception&) {
    std::error_code ignored;
    gone.close(ucx::close_mode::abort, ignored);
  }
}

std::vector<ucx::request> closing_connections::take() noexcept {
  const std::lock_guard guard(lock_);
  return std::exchange(closing_, {});
}

}  // namespace ucxio_python
