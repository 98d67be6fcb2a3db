#include "copying/agent_ends.hpp"

#include <fmt/format.h>

#include <limits>
#include <string>

#include "agent/agent_link.hpp"
#include "agent/agent_links.hpp"
#include "agent/agent_message.hpp"
#include "copying/piece_codec.hpp"
#include "copying/piece_header.hpp"
#include "output/exit_code.hpp"

namespace ucx::tool {
namespace {

constexpr std::uint64_t most_nanoseconds = 999'999'999;

nlohmann::json range_question(const char* asked, std::uint64_t id, const digest_range& wanted) {
  return {{"ask", asked},
          {"id", id},
          {"offset", wanted.offset},
          {"length", wanted.length},
          {"chunk", wanted.chunk}};
}

std::vector<content_digest> digests_of(agent_link& agent, const char* asked, std::uint64_t id,
                                       const digest_range& wanted) {
  return digests_in(agent.ask(range_question(asked, id, wanted)).header);
}

class agent_source final : public copy_source {
 public:
  agent_source(const url& from, const copy_terms& terms, server_clients& clients)
      : from_(from), codec_(terms.source_codec), agent_(clients.agents().of(from)) {
    const nlohmann::json opened =
        agent_->ask({{"ask", "open_source"}, {"name", from.name()}, {"verify", terms.verify}})
            .header;
    id_ = number_in(opened, "id");
    size_ = number_in(opened, "size");
  }
  ~agent_source() override {
    try {
      agent_->ask({{"ask", "close_source"}, {"id", id_}});
    } catch (const std::exception&) {  // it is gone with the conversation
    }
  }

  std::uint64_t size() const noexcept override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> into) override {
    const agent_message came = agent_->ask({{"ask", "read"},
                                            {"id", id_},
                                            {"offset", offset},
                                            {"size", into.size()},
                                            {"codec", name_of(codec_)}});
    try {
      decode(codec_in(came.header), came.payload, digest_in(came.header), into);
    } catch (const bad_message&) {
      throw;
    } catch (const failure& why) {
      throw failure(why.code(), fmt::format("{}: {}", to_string(from_), why.what()));
    }
  }
  std::uint64_t next_data(std::uint64_t offset) override { return offset; }
  std::vector<content_digest> digests(const digest_range& wanted) override {
    return digests_of(*agent_, "source_digests", id_, wanted);
  }
  source_facts facts() override {
    const nlohmann::json said = agent_->ask({{"ask", "facts"}, {"id", id_}}).header;
    if (!said.contains("modified_s")) return {};
    return {.modified = file_time{
                integer_in(said, "modified_s"),
                static_cast<std::uint32_t>(number_in(said, "modified_ns", most_nanoseconds))}};
  }
  void check_unchanged() override { agent_->ask({{"ask", "check_unchanged"}, {"id", id_}}); }

 private:
  const url from_;
  const codec codec_;
  const std::shared_ptr<agent_link> agent_;
  std::uint64_t id_ = 0;
  std::uint64_t size_ = 0;
};

class agent_target final : public copy_target {
 public:
  agent_target(const url& to, std::uint64_t size, const copy_terms& terms, server_clients& clients)
      : codec_(terms.target_codec), may_resume_(terms.resume), agent_(clients.agents().of(to)) {
    const nlohmann::json opened = agent_
                                      ->ask({{"ask", "open_target"},
                                             {"name", to.name()},
                                             {"size", size},
                                             {"resume", terms.resume},
                                             {"verify", terms.verify}})
                                      .header;
    id_ = number_in(opened, "id");
    present_ = number_in(opened, "present");
    may_have_holes_ = flag_in(opened, "may_have_holes");
  }
  ~agent_target() override {
    try {
      ask("close_target");
    } catch (const std::exception&) {  // it ends with the conversation
    }
  }

  std::uint64_t present() const noexcept override { return present_; }
  std::vector<content_digest> digests(const digest_range& wanted) override {
    return digests_of(*agent_, "target_digests", id_, wanted);
  }
  void begin(std::uint64_t present) override { ask("begin", {{"present", present}}); }
  bool may_have_holes() const noexcept override { return may_have_holes_; }
  void write(std::uint64_t offset, std::span<const std::byte> from) override {
    const coded_piece piece = encode(codec_, from);
    nlohmann::json question = piece_header(piece);
    question["offset"] = offset;
    question["size"] = from.size();
    ask("write", std::move(question), piece.bytes);
  }
  void complete(std::uint64_t size) override { ask("complete", {{"size", size}}); }
  void commit(const source_facts&) override { ask("commit"); }
  bool keep(bool is_good) noexcept override {
    try {
      return flag_in(ask("keep", {{"is_good", is_good}}), "stays");
    } catch (const std::exception&) {
      return may_resume_;  // the agent keeps what it has of a client that it lost
    }
  }

 private:
  nlohmann::json ask(const char* asked, nlohmann::json question = nlohmann::json::object(),
                     std::span<const std::byte> payload = {}) {
    question["ask"] = asked;
    question["id"] = id_;
    return agent_->ask(question, payload).header;
  }

  const codec codec_;
  const bool may_resume_;
  const std::shared_ptr<agent_link> agent_;
  std::uint64_t id_ = 0;
  std::uint64_t present_ = 0;
  bool may_have_holes_ = false;
};

}  // namespace

std::unique_ptr<copy_source> open_agent_source(const url& from, const copy_terms& terms,
                                               server_clients& clients) {
  return std::make_unique<agent_source>(from, terms, clients);
}

std::unique_ptr<copy_target> open_agent_target(const url& to, std::uint64_t size,
                                               const copy_terms& terms, server_clients& clients) {
  return std::make_unique<agent_target>(to, size, terms, clients);
}

}  // namespace ucx::tool
