#include "copying/agent_session.hpp"

#include <fmt/format.h>

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
    greet(question.header);
  } else if (asked == "copy") {
    begin_copy(question.header);
  } else if (asked == "look") {
    said.header = copy().look();
  } else if (asked == "stop") {
    copy().stop();
  } else {
    if (!ends_) ends_.emplace(own_server_);
    if (std::optional<agent_message> known = ends_->answer(question)) return std::move(*known);
    throw bad_message(fmt::format("\"{}\" is no question", asked));
  }
  return said;
}

void agent_session::greet(const nlohmann::json& question) {
  const std::uint64_t version = number_in(question, "version");
  if (version != agent_version) {
    throw bad_message(
        fmt::format("version {} of the agent's, and {} of its client's", agent_version, version));
  }
  is_greeted_ = true;
}

void agent_session::begin_copy(const nlohmann::json& question) {
  if (copy_) throw bad_message("one copy was asked for before");
  copy_.emplace(read_copy_question(question, own_server_, rules_));
}

agent_copy& agent_session::copy() {
  if (!copy_) throw bad_message("no copy was asked for");
  return *copy_;
}

}  // namespace ucx::tool
