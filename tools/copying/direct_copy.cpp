#include "copying/direct_copy.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "agent/agent_link.hpp"
#include "copying/agent_copy.hpp"
#include "output/exit_code.hpp"
#include "process/bounded_connect.hpp"
#include "ucx/client.hpp"
#include "ucx/client_options.hpp"
#include "ucx/ticket.hpp"

namespace ucx::tool {
namespace {

/// Each takes a thread, for as long as the copy lasts.
constexpr std::size_t most_servers = 64;

void check_remote(const location& place) {
  if (place.is_remote()) return;
  throw failure(exit_code::usage,
                fmt::format("--direct: {} is a path, and it goes from one server to another: "
                            "copy without --direct",
                            to_string(place)));
}

/// Refuses an address file: a server reads no file because a client names it.
void check_host(const location& source) {
  check_remote(source);
  if (!source.remote().socket_file().empty()) {
    throw failure(exit_code::usage,
                  fmt::format("--direct: {} is behind a Unix socket, and the target's server opens "
                              "none that a client names: copy without --direct",
                              to_string(source)));
  }
  if (source.remote().address_file().empty()) return;
  throw failure(exit_code::usage,
                fmt::format("--direct: {} is behind an address file, and the target's server reads "
                            "none that a client names: copy without --direct, or start the "
                            "source's server with --bind HOST:PORT, too, and name it "
                            "ucx://HOST:PORT",
                            to_string(source)));
}

}  // namespace

direct_copy::direct_copy(const std::vector<std::string>& places, const copy_order& order,
                         const client_settings& settings, transfer_counters& counters,
                         std::stop_token stop, copy_run::report tell)
    : places_(places),
      order_(order),
      settings_(settings),
      counters_(counters),
      stop_(std::move(stop)),
      tell_(std::move(tell)) {
  for (const location& each : order.from) check_host(each);
  check_remote(order.to);
  if (order.walk.follow_links) {
    throw failure(exit_code::usage, "--dereference: with --direct there are no links");
  }
}

/// The command then says that it was interrupted.
void direct_copy::check_stop() const {
  if (stop_.stop_requested()) throw failure(exit_code::interrupted, "interrupted");
}

/// Has a server take a ticket. Returns the client for which it counts.
client direct_copy::lend(const ticket& made, const url& server) const {
  check_stop();
  client_options chosen = settings_.options();
  chosen.worker.progress = progress_mode::sleeping_thread;  // nothing else drives it
  client lender =
      bounded_connect(settings_, server, chosen,
                      [](const url& at, const client_options& by) { return client(at, by); });
  const std::stop_callback ending(stop_, [&lender] { lender.share().close(); });
  made.lend(lender);
  check_stop();
  return lender.share();
}

/// Has the sources' servers take tickets, by which the agent may read there what this user may, in
/// the conversation with this key.
nlohmann::json direct_copy::lend_tickets(std::vector<client>& lenders,
                                         std::span<const std::byte> key) const {
  std::set<url> servers;
  for (const location& each : order_.from) servers.insert(each.remote().server());
  if (servers.size() > most_servers) {
    throw failure(exit_code::usage,
                  fmt::format("--direct: {} servers, and {} at most where the target's server has "
                              "rules",
                              servers.size(), most_servers));
  }
  nlohmann::json lent = nlohmann::json::array();
  for (const url& each : servers) {
    const ticket told;
    lenders.push_back(lend(told.bound_to(key), each));
    lent.push_back({{"server", to_string(each)}, {"ticket", told.text()}});
  }
  return lent;
}

void direct_copy::run() {
  std::vector<client> lenders;  // tickets count as long as these are connected
  std::stop_source opening;     // what was begun is asked to stop, and says how far it came
  std::optional<std::stop_callback<std::function<void()>>> forwarding(
      std::in_place, stop_, [&opening] { opening.request_stop(); });
  agent_link agent(order_.to.remote().server(), settings_, opening.get_token());
  forwarding.reset();
  nlohmann::json question = copy_question(places_, order_, settings_);
  if (agent.needs_tickets()) question["tickets"] = lend_tickets(lenders, agent.key());
  agent.ask(question);
  bool is_told_to_stop = false;
  nlohmann::json news;
  do {
    if (!is_told_to_stop && stop_.stop_requested()) {
      agent.ask({{"ask", "stop"}});
      is_told_to_stop = true;
    }
    news = agent.ask({{"ask", "look"}}).header;
  } while (!take_news(news, counters_, tell_));
  left_something_ = flag_in(news, "left_something");
  throw_failed(object_in(news, "outcome"));
}

}  // namespace ucx::tool
