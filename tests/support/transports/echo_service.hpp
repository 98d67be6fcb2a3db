// Sends back what comes with a tag: the other side of tests with many peers.
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <system_error>
#include <utility>

#include "ucx/buffer.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/message.hpp"
#include "ucx/receive_target.hpp"
#include "ucx/request.hpp"
#include "ucx/scheduled_call.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {

/// Echoes, with its tag and to its sender, every tagged message of a worker that somebody drives.
class echo_service {
 public:
  explicit echo_service(worker& driven)
      : worker_(driven),
        each_round_(driven.call_in_progress(progress_phase::after, repetition::every_round,
                                            [this] { serve(); })) {}

 private:
  static constexpr std::size_t longest = std::size_t{64} << 20U;

  /// One that has to be received first.
  struct exchange {
    explicit exchange(message taken) : asked(std::move(taken)) {
      receive = asked.start_receive({content, longest});
    }
    message asked;
    buffer content;
    request receive;  // dies first: it fills the buffer
  };

  void serve() {
    while (std::optional<message> came = worker_.take(tag_match::any())) {
      if (came->has_payload()) {
        std::error_code gone;
        came->peer().post_send(came->tag(), came->data(), 0, {.memory = send_memory::copied}, gone);
      } else {
        exchanges_.emplace_back(std::move(*came));
      }
    }
    exchanges_.remove_if([](exchange& each) {
      if (!each.receive.done()) return false;
      std::error_code gone;
      if (!each.receive.error()) {
        each.asked.peer().post_send(each.asked.tag(), std::move(each.content), 0, {}, gone);
      }
      return true;
    });
  }

  worker& worker_;
  std::list<exchange> exchanges_;
  scheduled_call each_round_;  // dies first: it uses the others
};

}  // namespace ucx::test
