// What a program is told of one connection for messages, and the messages that it has not taken.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <ucx/connection_report.hpp>
#include <ucx/message.hpp>

#include "loop_worker.hpp"

namespace ucxio_python {

/// The news of a connection: that it stands, that it ended, active messages. Handlers of the
/// library note them, and the worker's `turn` tells their number.
/// Threads: any, without the GIL.
class connection_news {
 public:
  explicit connection_news(loop_worker& over) : told_(over.ended()), number_(over.next_number()) {}

  /// Returns the number by which the worker tells that there is news.
  std::uint64_t number() const noexcept { return number_; }
  void tell() { told_->add(number_); }

  void end(const ucx::connection_end& how);
  /// Returns the text of the end; nothing while there is none.
  std::optional<std::string> end_text() const;

  void put(ucx::message came);
  bool has_message() const;
  /// Takes the oldest message; an empty one where there is none.
  ucx::message take();

 private:
  const std::shared_ptr<ended_operations> told_;
  const std::uint64_t number_;
  mutable std::mutex lock_;
  std::optional<std::string> end_text_;
  std::deque<ucx::message> messages_;
};

/// Finds the connection that an active message came by. A message of another one is dropped, which
/// refuses it to a sender that waits.
/// Threads: any, without the GIL.
class message_inbox {
 public:
  void add(std::uint64_t connection, const std::shared_ptr<connection_news>& news);
  void remove(std::uint64_t connection);
  void put(ucx::message came);

 private:
  std::mutex lock_;
  std::map<std::uint64_t, std::weak_ptr<connection_news>> connections_;
};

}  // namespace ucxio_python
