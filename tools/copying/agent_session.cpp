#include "copying/agent_session.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "copying/copy_request.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {

void agent_session::run() {
  try {
    while (const std::optional<agent_message> question = receive_message(client_)) {
      agent_message said;
      try {
        said = answer(*question);
      } catch (const bad_message&) {
        throw;
      } catch (const failure& why) {
        said.header = failed_header(why);
      } catch (const error& why) {
        said.header = failed_header(failure(exit_code_of(why.code()), why.what()));
      }
      send_message(client_, said.header, said.payload);
    }
  } catch (const bad_message& why) {
    send_message(client_, failed_header(why));
  }
}

agent_message agent_session::answer(const agent_message& question) {
  const std::string asked = text_in(question.header, "ask");
  if (!is_greeted_ && asked != "hello") throw bad_message("who are you?");
  agent_message said;
  if (asked == "hello") {
    said.header = greet(question.header);
  } else if (asked == "copy") {
    begin_copy(question.header);
  } else if (asked == "look") {
    said.header = copy().look();
  } else if (asked == "stop") {
    copy().stop();
  } else {
    if (!ends_) ends_.emplace(own_server_, own_ticket());
    if (std::optional<agent_message> known = ends_->answer(question)) return std::move(*known);
    throw bad_message(fmt::format("\"{}\" is no question", asked));
  }
  return said;
}

nlohmann::json agent_session::greet(const nlohmann::json& question) {
  const std::uint64_t version = number_in(question, "version");
  if (version != agent_version) {
    throw bad_message(
        fmt::format("version {} of the agent's, and {} of its client's", agent_version, version));
  }
  is_greeted_ = true;
  nlohmann::json said = nlohmann::json::object();
  if (needs_tickets_) said["needs_tickets"] = true;
  return said;
}

/// Returns the ticket that the server took when it introduced the client.
std::optional<server_tickets> agent_session::own_ticket() const {
  if (!needs_tickets_) return std::nullopt;
  server_tickets made;
  const std::span<const std::byte> key = client_.meeting_key();
  if (key.size() == ticket::size) {
    made.emplace(own_server_.server(), ticket(key.first<ticket::size>()));
  }
  return made;
}

void agent_session::begin_copy(const nlohmann::json& question) {
  if (copy_) throw bad_message("one copy was asked for before");
  const copy_request asked = read_copy_question(question, own_server_, rules_);
  std::optional<server_tickets> tickets = own_ticket();
  if (tickets) {
    if (asked.order.terms.source_codec != codec::none) {
      throw failure(exit_code::permission,
                    fmt::format("{}: with rules, its agent compresses nothing that it fetches: the "
                                "source's agent would act for it, and not for its client",
                                to_string(own_server_)));
    }
    // Those of another client would become other ones. The one for this server stays.
    for (const auto& [server, told] : asked.tickets) {
      tickets->emplace(server, told.bound_to(client_.meeting_key()));
    }
  }
  copy_.emplace(asked, tickets);
}

agent_copy& agent_session::copy() {
  if (!copy_) throw bad_message("no copy was asked for");
  return *copy_;
}

}  // namespace ucx::tool
