// A session's channel whose questions and answers go to an audit, too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "connection/channel.hpp"
#include "server/audit_file.hpp"
#include "wire/control_message.hpp"

namespace ucx::detail {

/// Returns "ok", or the name of the error.
std::string audited_outcome(std::error_code outcome);

/// Tells of each open, refusal and change, when it is answered. Under the worker's lock.
class audited_channel final : public channel {
 public:
  using namer = std::function<std::string(std::uint64_t region)>;

  audited_channel(std::unique_ptr<channel> by, std::shared_ptr<audit_file> to);

  /// `names` returns the name by which the client has a region open, or nothing.
  void set_names(namer names) { names_ = std::move(names); }
  /// The client acts for others, whose names the lines have from here on.
  void act_for(std::string principals) { principals_ = std::move(principals); }
  /// The client asks. Returns whether it may: a number that waits for its answer is not given
  /// twice, or the audit would tell of another name.
  bool asked(const control_header& header, std::span<const std::byte> message);
  /// The connection has ended, or the client has left.
  void ended(std::error_code why) noexcept;
  /// Ends the channel, soon. The peer is not to blame.
  void end(std::error_code why, const std::string& words);
  /// The client had the name open, which is no longer allowed.
  void revoked(const std::string& name) noexcept;

  void send(std::span<const std::byte> message) override;
  std::size_t longest() const noexcept override { return by_->longest(); }
  std::size_t unsent() const noexcept override { return by_->unsent(); }
  void take_turn(move_only_handler<> work) override { by_->take_turn(std::move(work)); }
  void blame(std::error_code why, const std::string& words) override;
  peer_reach reach() const noexcept override { return by_->reach(); }
  peer_facts facts() const override { return peer_; }
  clock::time_point now() const noexcept override { return by_->now(); }
  void grant(std::uint64_t region, access rights) override { by_->grant(region, rights); }
  void pass_file(std::uint64_t region, access rights) override { by_->pass_file(region, rights); }
  void end_grant(std::uint64_t region) noexcept override { by_->end_grant(region); }
  void end_grants() noexcept override { by_->end_grants(); }
  void revoke_grant(std::uint64_t region) noexcept override { by_->revoke_grant(region); }

 private:
  /// A question, as it is told when it is answered.
  struct question {
    const char* event = "";
    std::vector<std::string> names = {};
    std::string to = {};        // of a rename
    std::string rights = {};    // of an open
    bool tells_success = true;  // else of refusals only
    bool changes = false;
  };

  question look_at(const control_header& header, std::span<const std::byte> message) const;
  audit_file::line line_of(const question& of, const std::string& name,
                           std::error_code outcome) const;
  void tell(const question& of, const std::string& name, std::error_code outcome) noexcept;
  void tell_each(const question& of, const control_header& answer,
                 std::span<const std::byte> message);

  const std::unique_ptr<channel> by_;
  const std::shared_ptr<audit_file> to_;
  const peer_facts peer_;
  const std::string who_;
  std::string principals_;  // for whom it acts; else empty
  const std::shared_ptr<audit_file::share> share_ = std::make_shared<audit_file::share>();
  namer names_;
  bool is_connected_ = false;
  std::unordered_map<std::uint64_t, question> asked_;
};

}  // namespace ucx::detail
