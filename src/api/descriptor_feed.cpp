#include "ucx/descriptor_feed.hpp"

#include <utility>

#include "client/feeding_thread.hpp"
#include "client/opened_source.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"

namespace ucx {
namespace {

using detail::feeding_thread;
using detail::result;

result<std::unique_ptr<feeding_thread>> feed(const url& name,
                                             const descriptor_feed_options& options) {
  auto source = detail::open_source(name, {options.timeout});
  if (!source) return source.why();
  return feeding_thread::make(*std::move(source), options);
}

result<std::unique_ptr<feeding_thread>> feed(const remote_region& region,
                                             const descriptor_feed_options& options) {
  return feeding_thread::make({std::nullopt, region.share()}, options);
}

}  // namespace

descriptor_feed::descriptor_feed(const url& name, const descriptor_feed_options& options,
                                 std::error_code& ec)
    : thread_(feed(name, options).or_end(ec)) {}

descriptor_feed::descriptor_feed(const remote_region& region,
                                 const descriptor_feed_options& options, std::error_code& ec)
    : thread_(feed(region, options).or_end(ec)) {}

descriptor_feed::descriptor_feed(descriptor_feed&& other) noexcept = default;

descriptor_feed& descriptor_feed::operator=(descriptor_feed&& other) noexcept {
  if (this != &other) {
    const descriptor_feed ends(std::move(*this));
    thread_ = std::move(other.thread_);
  }
  return *this;
}

descriptor_feed::~descriptor_feed() {
  if (!thread_ || thread_->is_of_this_process()) return;
  thread_->leave_to_parent();
  static_cast<void>(thread_.release());
}

int descriptor_feed::reader() const noexcept { return thread_ ? thread_->reader() : -1; }

file_descriptor descriptor_feed::take_reader() noexcept {
  return thread_ ? thread_->take_reader() : file_descriptor();
}

bool descriptor_feed::wait_for(std::chrono::nanoseconds limit) const {
  return !thread_ || thread_->wait_for(limit);
}

std::error_code descriptor_feed::error() const {
  return thread_ ? thread_->error() : make_error_code(errc::closed);
}

std::string descriptor_feed::error_message() const {
  return thread_ ? thread_->error_text() : "a feed that was moved from, or not made";
}

std::uint64_t descriptor_feed::fed() const noexcept { return thread_ ? thread_->fed() : 0; }

void descriptor_feed::stop() noexcept {
  if (thread_) thread_->stop();
}

}  // namespace ucx
