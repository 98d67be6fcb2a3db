#include "copying/agent_copy.hpp"

#include <chrono>

#include "agent/agent_message.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

/// So often a client hears that there is nothing new.
constexpr std::chrono::milliseconds moment{200};

/// So many failures fit into a header, and so many wait until the client has heard the others.
constexpr std::size_t most_told = 8;
constexpr std::size_t most_untold = 256;

}  // namespace

agent_copy::agent_copy(const copy_request& asked, const std::optional<server_tickets>& tickets)
    : order_(asked.order),
      clients_(asked.settings, tickets),
      hurrying_([this](const std::stop_token& asked_to) { hurry(asked_to); }),
      running_([this] { run(); }) {}

agent_copy::~agent_copy() { stop(); }

void agent_copy::run() {
  copy_run copying(order_, clients_, counters_, stop_.get_token(),
                   [this](const failure& why) { say(why); });
  std::optional<failure> ended_by;
  try {
    copying.run();
  } catch (const failure& why) {
    ended_by = why;
  } catch (const error& why) {
    ended_by = failure(exit_code_of(why.code()), why.what());
  } catch (const std::exception& why) {
    ended_by = failure(exit_code::failure, why.what());
  }
  const std::lock_guard guard(mutex_);
  outcome_ = ended_by;
  left_something_ = copying.left_something();
  over_ = true;
  changed_.notify_all();
}

void agent_copy::say(const failure& why) {
  std::unique_lock guard(mutex_);
  changed_.wait(guard, stop_.get_token(), [this] { return said_.size() < most_untold; });
  said_.push_back(why);
  changed_.notify_all();
}

void agent_copy::stop() {
  const std::lock_guard guard(mutex_);
  if (over_) return;
  stop_.request_stop();
  hurrying_.request_stop();
}

void agent_copy::hurry(const std::stop_token& asked_to) {
  {
    std::unique_lock guard(mutex_);
    if (changed_.wait(guard, asked_to, [this] { return over_; })) return;
  }
  clients_.close_all();
}

nlohmann::json agent_copy::look() {
  std::unique_lock guard(mutex_);
  changed_.wait_for(guard, moment, [this] { return over_ || !said_.empty(); });
  nlohmann::json left_out = nlohmann::json::array();
  while (!said_.empty() && left_out.size() < most_told) {
    left_out.push_back(failed_header(said_.front()));
    said_.pop_front();
  }
  changed_.notify_all();
  nlohmann::json news{{"bytes", counters_.bytes.load()},
                      {"present", counters_.present.load()},
                      {"hashed", counters_.hashed.load()},
                      {"files", counters_.files.load()},
                      {"hollow", counters_.hollow.load()},
                      {"total_bytes", counters_.total_bytes.load()},
                      {"total_files", counters_.total_files.load()},
                      {"is_total_known", counters_.is_total_known.load()},
                      {"left_out", std::move(left_out)},
                      {"over", over_ && said_.empty()}};
  if (over_) {
    news["left_something"] = left_something_;
    news["outcome"] = outcome_ ? failed_header(*outcome_) : nlohmann::json::object();
  }
  return news;
}

bool take_news(const nlohmann::json& news, transfer_counters& counters,
               const copy_run::report& tell) {
  counters.bytes = number_in(news, "bytes");
  counters.present = number_in(news, "present");
  counters.hashed = number_in(news, "hashed");
  counters.files = number_in(news, "files");
  counters.hollow = number_in(news, "hollow");
  counters.total_bytes = number_in(news, "total_bytes");
  counters.total_files = number_in(news, "total_files");
  counters.is_total_known = flag_in(news, "is_total_known");
  for (const nlohmann::json& each : objects_in(news, "left_out", most_told)) {
    try {
      throw_failed(each);
    } catch (const bad_message&) {
      throw;
    } catch (const failure& why) {
      tell(why);
    }
  }
  return flag_in(news, "over");
}

}  // namespace ucx::tool
