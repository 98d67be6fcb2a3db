#include "ucx/experimental/read_fd_feed.hpp"

#include <utility>

#include "client/feeding_thread.hpp"
#include "client/opened_source.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::experimental {
namespace {

using detail::feeding_thread;
using detail::result;

result<std::unique_ptr<feeding_thread>> feed(const url& name, const read_fd_feed_options& options) {
  auto source = detail::open_source(name, {options.timeout});
  if (!source) return source.why();
  return feeding_thread::make(*std::move(source), options);
}

result<std::unique_ptr<feeding_thread>> feed(const remote_region& region,
                                             const read_fd_feed_options& options) {
  return feeding_thread::make({std::nullopt, region.share()}, options);
}

}  // namespace

read_fd_feed::read_fd_feed(const url& name, const read_fd_feed_options& options,
                           std::error_code& ec)
    : thread_(feed(name, options).or_end(ec)) {}

read_fd_feed::read_fd_feed(const remote_region& region, const read_fd_feed_options& options,
                           std::error_code& ec)
    : thread_(feed(region, options).or_end(ec)) {}

read_fd_feed::read_fd_feed(read_fd_feed&& other) noexcept = default;

read_fd_feed& read_fd_feed::operator=(read_fd_feed&& other) noexcept {
  if (this != &other) {
    const read_fd_feed ends(std::move(*this));
    thread_ = std::move(other.thread_);
  }
  return *this;
}

read_fd_feed::~read_fd_feed() {
  if (!thread_ || thread_->is_of_this_process()) return;
  thread_->leave_to_parent();
  static_cast<void>(thread_.release());
}

int read_fd_feed::fd() const noexcept { return thread_ ? thread_->reader() : -1; }

file_descriptor read_fd_feed::release_fd() noexcept {
  return thread_ ? thread_->take_reader() : file_descriptor();
}

bool read_fd_feed::wait_for(std::chrono::nanoseconds limit) const {
  return !thread_ || thread_->wait_for(limit);
}

std::error_code read_fd_feed::error() const {
  return thread_ ? thread_->error() : make_error_code(errc::closed);
}

std::string read_fd_feed::error_message() const {
  return thread_ ? thread_->error_text() : "a feed that was moved from, or not made";
}

std::uint64_t read_fd_feed::bytes_fed() const noexcept { return thread_ ? thread_->fed() : 0; }

void read_fd_feed::stop() noexcept {
  if (thread_) thread_->stop();
}

}  // namespace ucx::experimental
