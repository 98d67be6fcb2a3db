#include "connection_news.hpp"

#include <utility>

#include <ucx/endpoint.hpp>

namespace ucxio_python {

void connection_news::end(const ucx::connection_end& how) {
  {
    const std::lock_guard guard(lock_);
    end_text_ = how.error_message;
  }
  tell();
}

std::optional<std::string> connection_news::end_text() const {
  const std::lock_guard guard(lock_);
  return end_text_;
}

void connection_news::put(ucx::message came) {
  {
    const std::lock_guard guard(lock_);
    messages_.push_back(std::move(came));
  }
  tell();
}

bool connection_news::has_message() const {
  const std::lock_guard guard(lock_);
  return !messages_.empty();
}

ucx::message connection_news::take() {
  const std::lock_guard guard(lock_);
  if (messages_.empty()) return {};
  ucx::message oldest = std::move(messages_.front());
  messages_.pop_front();
  return oldest;
}

void message_inbox::add(std::uint64_t connection, const std::shared_ptr<connection_news>& news) {
  const std::lock_guard guard(lock_);
  connections_[connection] = news;
}

void message_inbox::remove(std::uint64_t connection) {
  const std::lock_guard guard(lock_);
  connections_.erase(connection);
}

void message_inbox::put(ucx::message came) {
  const std::uint64_t connection = came.peer().id();
  std::shared_ptr<connection_news> news;
  {
    const std::lock_guard guard(lock_);
    const auto found = connections_.find(connection);
    if (found != connections_.end()) news = found->second.lock();
  }
  if (news) news->put(std::move(came));
}

}  // namespace ucxio_python
