#include "server/server_addresses.hpp"

#include <unistd.h>

#include <array>
#include <utility>

#include "ucx/error.hpp"
#include "ucx/url.hpp"

namespace ucx::detail {

result<void> server_addresses::publish(const std::filesystem::path& file,
                                       const worker_address& own) {
  const std::lock_guard guard(mutex_);
  if (closed_) return failure{errc::closed, "asking for the server's worker address"};
  auto made = address_file::write(file, {.address = own, .local = is_local_});
  if (!made) return made.why();
  files_.push_back(*std::move(made));
  return {};
}

std::string server_addresses::url(std::string_view name) const {
  if (socket_.empty()) {
    const std::lock_guard guard(mutex_);
    if (files_.empty()) return {};
    return to_string(ucx::url::from_address_file(files_.front()->path().string(), name));
  }
  if (socket_.is_unix()) return to_string(ucx::url::over_unix(socket_.host(), name));
  std::string host = socket_.host();
  if (socket_.is_wildcard()) {
    std::array<char, 256> own = {};
    if (::gethostname(own.data(), own.size() - 1) == 0) host = own.data();
  }
  if (by_ucx_) return to_string(ucx::url(host, socket_.port(), name));
  if (by_tls_) return to_string(ucx::url::over_tls(host, socket_.port(), name));
  return to_string(ucx::url::over_socket(host, socket_.port(), name));
}

void server_addresses::close() noexcept {
  const std::lock_guard guard(mutex_);
  closed_ = true;
  files_.clear();
}

}  // namespace ucx::detail
