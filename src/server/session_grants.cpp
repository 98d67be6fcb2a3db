#include "server/session_grants.hpp"

#include "connection/client_ledger.hpp"
#include "server/told_descriptor.hpp"

namespace ucx::detail {

session_grants::session_grants(channel& by, const session_rights& rights)
    : channel_(by), rights_(rights), account_(by.facts().account) {}

std::error_code session_grants::may_begin(std::uint64_t region) const noexcept {
  return !account_ || opens_.contains(region) ? std::error_code() : account_->may_open();
}

void session_grants::count_closed(std::size_t regions) noexcept {
  if (account_) account_->closed(regions);
}

std::vector<std::byte> session_grants::descriptor(const remote_descriptor& whole, access wanted,
                                                  std::string_view name) const {
  const peer_reach reach = tells_places(name) ? channel_.reach() : peer_reach();
  return told_descriptor(whole, wanted, reach).encode();
}

bool session_grants::tells_places(std::string_view name) const noexcept {
  const peer_reach reach = channel_.reach();
  return (reach.shares_host || reach.has_rma || reach.takes_files) &&
         rights_.allow(access_right::fabric, name);
}

void session_grants::begin(std::uint64_t region, access rights, std::string_view name) {
  const auto [found, is_new] = opens_.try_emplace(region, 0);
  if (is_new && account_) account_->opened();
  channel_.grant(region, rights);
  if (tells_places(name)) channel_.pass_file(region, rights);
  ++found->second;
}

bool session_grants::release(std::uint64_t region) noexcept {
  const auto found = opens_.find(region);
  if (found == opens_.end()) return false;
  if (found->second > 1) {
    --found->second;
    return false;
  }
  end(region);
  return true;
}

void session_grants::end(std::uint64_t region) noexcept {
  if (opens_.erase(region) == 0) return;
  count_closed(1);
  channel_.end_grant(region);
}

void session_grants::revoke(std::uint64_t region) noexcept {
  if (opens_.erase(region) == 0) return;
  count_closed(1);
  channel_.revoke_grant(region);
}

void session_grants::end_all() noexcept {
  count_closed(opens_.size());
  opens_.clear();
  channel_.end_grants();
}

}  // namespace ucx::detail
