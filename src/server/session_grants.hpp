// The regions that one client of a server has open, by their numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "connection/channel.hpp"
#include "server/session_rights.hpp"
#include "ucx/access.hpp"
#include "ucx/remote_descriptor.hpp"

namespace ucx::detail {

/// Has the client's connection reach what the client has opened, and nothing else. A region that
/// was opened several times has one number: the rights add up, until each open was released. Under
/// the worker's lock.
class session_grants {
 public:
  session_grants(channel& by, const session_rights& rights);
  ~session_grants() { count_closed(opens_.size()); }
  session_grants(const session_grants&) = delete;
  session_grants& operator=(const session_grants&) = delete;

  /// Returns what the client is told of a region that it opens by this name, in wire form.
  std::vector<std::byte> descriptor(const remote_descriptor& whole, access wanted,
                                    std::string_view name) const;
  /// Returns whether that tells it more than to ask this side.
  bool tells_places(std::string_view name) const noexcept;
  /// Returns no error where one more region may be open, else too_many_client_files.
  std::error_code may_begin(std::uint64_t region) const noexcept;
  /// Begins an open of the region by this name, before the client is told its number.
  void begin(std::uint64_t region, access rights, std::string_view name);
  /// Ends one open; returns whether it was the last one.
  bool release(std::uint64_t region) noexcept;
  /// Ends all opens of the region.
  void end(std::uint64_t region) noexcept;
  /// Likewise, and has the client's accesses be told why.
  void revoke(std::uint64_t region) noexcept;
  /// The client knows that it has no such region any more.
  void forget(std::uint64_t region) noexcept { channel_.end_grant(region); }
  /// Ends everything: the client leaves.
  void end_all() noexcept;

 private:
  void count_closed(std::size_t regions) noexcept;

  channel& channel_;
  const session_rights& rights_;
  const std::shared_ptr<client_account> account_;  // may be null
  std::unordered_map<std::uint64_t, std::uint64_t> opens_;
};

}  // namespace ucx::detail
