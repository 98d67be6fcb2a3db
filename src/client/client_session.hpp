// The client's side of the control protocol: docs/reference/wire-format.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "connection/channel.hpp"
#include "wire/control_message.hpp"

namespace ucx::detail {

/// Questions that wait for their answers. Under the worker's lock. States: *open* until the channel
/// ends or the server says bye, then *over*: every question has failed, and every further one does.
class client_session final : public channel_receiver {
 public:
  /// It is told of an answer, under the worker's lock, inside UCX's callback.
  class asker {
   public:
    virtual void answered() noexcept = 0;

   protected:
    ~asker() = default;
  };
  /// One question. The caller owns it, and waits until it is done, or forgets it.
  struct question {
    control_type answer_type;
    bool done = false;
    std::error_code outcome = {};
    std::vector<std::byte> answer = {};  ///< The whole message.
    std::uint64_t id = 0;
    asker* by = nullptr;  ///< It is told when the question is done; last, as it may go then.
  };

  /// `on_revoke` is told of regions that the server withdraws.
  client_session(channel& by, std::function<void(std::uint64_t region)> on_revoke);
  client_session(const client_session&) = delete;
  client_session& operator=(const client_session&) = delete;

  /// Sends what `encode` makes of a header for `type`, and puts `asked` on the books.
  template <class Body>
  void ask(question& asked, control_type type, const Body& body) {
    const control_header header = enter(asked, type);
    if (!asked.done) channel_.send(encode_control(header, body));
  }
  /// Takes a question off the books: its answer is dropped.
  void forget(question& asked) noexcept;
  void leave();
  /// Sends a message that gets no answer, unless it is over.
  template <class Body>
  void tell(control_type type, const Body& body) {
    control_header header;
    header.type = type;
    if (!over_) channel_.send(encode_control(header, body));
  }

  /// No question waits for this answer: the server need not hold open what it opened.
  void release_unwanted(std::span<const std::byte> answer);

  bool over() const noexcept { return over_; }
  std::error_code why() const noexcept { return why_; }

  void received(std::span<const std::byte> message) override;
  void ended(std::error_code why) noexcept override;

 private:
  control_header enter(question& asked, control_type type);

  channel& channel_;
  std::function<void(std::uint64_t)> on_revoke_;
  std::map<std::uint64_t, question*> questions_;
  std::uint64_t last_id_ = 0;
  bool over_ = false;
  std::error_code why_;
};

}  // namespace ucx::detail
