#include "copying/hosted_ends.hpp"

#include <string>
#include <utility>
#include <vector>

#include "copying/copy_order.hpp"
#include "copying/piece_codec.hpp"
#include "copying/piece_header.hpp"
#include "output/exit_code.hpp"
#include "process/client_settings.hpp"

namespace ucx::tool {
namespace {

/// Both ends of all that one copy is at. A store may let a client have fewer files open.
constexpr std::size_t most_ends = 2 * std::size_t{copy_order::most_parallel};

template <class End>
End& end_of(std::map<std::uint64_t, std::unique_ptr<End>>& all, const nlohmann::json& question) {
  const auto found = all.find(number_in(question, "id"));
  if (found == all.end()) throw bad_message("there is no such end");
  return *found->second;
}

std::size_t size_in(const nlohmann::json& question) {
  return static_cast<std::size_t>(number_in(question, "size", digest_chunk));
}

digest_range range_in(const nlohmann::json& question) {
  return {.offset = number_in(question, "offset"),
          .length = number_in(question, "length", most_told_digests * digest_chunk),
          .chunk = number_in(question, "chunk", digest_chunk)};
}

template <class End>
agent_message digests_of(End& end, const nlohmann::json& question) {
  const digest_range wanted = range_in(question);
  if (wanted.chunk != digest_chunk) throw bad_message("no chunk is like that");
  return {.header = digests_header(end.digests(wanted))};
}

}  // namespace

hosted_ends::hosted_ends(const url& own_server, const std::optional<server_tickets>& tickets)
    : own_server_(own_server), clients_(client_settings(), tickets) {}

hosted_ends::~hosted_ends() {
  for (const auto& [id, each] : targets_) each->keep(true);
}

const std::map<std::string, hosted_ends::call>& hosted_ends::calls() {
  static const std::map<std::string, call> all{{"open_source", &hosted_ends::open_source},
                                               {"read", &hosted_ends::read},
                                               {"source_digests", &hosted_ends::source_digests},
                                               {"facts", &hosted_ends::facts},
                                               {"check_unchanged", &hosted_ends::check_unchanged},
                                               {"close_source", &hosted_ends::close_source},
                                               {"open_target", &hosted_ends::open_target},
                                               {"target_digests", &hosted_ends::target_digests},
                                               {"begin", &hosted_ends::begin},
                                               {"write", &hosted_ends::write},
                                               {"complete", &hosted_ends::complete},
                                               {"commit", &hosted_ends::commit},
                                               {"keep", &hosted_ends::keep},
                                               {"close_target", &hosted_ends::close_target}};
  return all;
}

std::optional<agent_message> hosted_ends::answer(const agent_message& question) {
  const auto found = calls().find(text_in(question.header, "ask"));
  if (found == calls().end()) return std::nullopt;
  return (this->*found->second)(question);
}

std::uint64_t hosted_ends::new_id() {
  if (sources_.size() + targets_.size() >= most_ends) {
    throw failure(exit_code::failure, "an agent does not open more files for one client");
  }
  return ++last_id_;
}

location hosted_ends::place_of(const std::string& name) const {
  return location(own_server_.with_name(name));
}

copy_source& hosted_ends::source(const json& question) { return end_of(sources_, question); }

copy_target& hosted_ends::target(const json& question) { return end_of(targets_, question); }

agent_message hosted_ends::open_source(const agent_message& question) {
  const std::uint64_t id = new_id();
  const copy_terms terms{.verify = flag_in(question.header, "verify")};
  const auto& made = sources_[id] =
      tool::open_source(place_of(text_in(question.header, "name")), terms, clients_);
  return {.header = {{"id", id}, {"size", made->size()}}};
}

agent_message hosted_ends::read(const agent_message& question) {
  const codec wanted = codec_in(question.header);
  std::vector<std::byte> bytes(size_in(question.header));
  source(question.header).read(number_in(question.header, "offset"), bytes);
  coded_piece piece = encode(wanted, bytes);
  nlohmann::json header = piece_header(piece);
  return {.header = std::move(header), .payload = std::move(piece.bytes)};
}

agent_message hosted_ends::source_digests(const agent_message& question) {
  return digests_of(source(question.header), question.header);
}

agent_message hosted_ends::facts(const agent_message& question) {
  const source_facts known = source(question.header).facts();
  agent_message said;
  if (!known.modified) return said;
  said.header["modified_s"] = known.modified->seconds;
  said.header["modified_ns"] = known.modified->nanoseconds;
  return said;
}

agent_message hosted_ends::check_unchanged(const agent_message& question) {
  source(question.header).check_unchanged();
  return {};
}

agent_message hosted_ends::close_source(const agent_message& question) {
  sources_.erase(number_in(question.header, "id"));
  return {};
}

agent_message hosted_ends::open_target(const agent_message& question) {
  const std::uint64_t id = new_id();
  const copy_terms terms{.verify = flag_in(question.header, "verify"),
                         .resume = flag_in(question.header, "resume")};
  const auto& made = targets_[id] =
      tool::open_target(place_of(text_in(question.header, "name")),
                        number_in(question.header, "size"), terms, clients_);
  return {.header = {{"id", id},
                     {"present", made->present()},
                     {"may_have_holes", made->may_have_holes()}}};
}

agent_message hosted_ends::target_digests(const agent_message& question) {
  return digests_of(target(question.header), question.header);
}

agent_message hosted_ends::begin(const agent_message& question) {
  target(question.header).begin(number_in(question.header, "present"));
  return {};
}

agent_message hosted_ends::write(const agent_message& question) {
  copy_target& to = target(question.header);
  std::vector<std::byte> bytes(size_in(question.header));
  decode(codec_in(question.header), question.payload, digest_in(question.header), bytes);
  to.write(number_in(question.header, "offset"), bytes);
  return {};
}

agent_message hosted_ends::complete(const agent_message& question) {
  target(question.header).complete(number_in(question.header, "size"));
  return {};
}

agent_message hosted_ends::commit(const agent_message& question) {
  target(question.header).commit({});
  return {};
}

agent_message hosted_ends::keep(const agent_message& question) {
  const bool stays = target(question.header).keep(flag_in(question.header, "is_good"));
  return {.header = {{"stays", stays}}};
}

agent_message hosted_ends::close_target(const agent_message& question) {
  targets_.erase(number_in(question.header, "id"));
  return {};
}

}  // namespace ucx::tool
