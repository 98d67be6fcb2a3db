// The owner's side: answers peers' reads and writes of the regions of the worker's context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>

#include "detail/frame.hpp"
#include "detail/intrusive_list.hpp"
#include "detail/pool.hpp"

namespace ucx::detail {

class endpoint_core;
class read_answer;
class region_core;
class worker_core;

struct answer_tag {};

/// Trusts nothing that a peer says: region, incarnation, generation, bounds and rights are checked
/// against the owner's own table at every access.
class region_service {
 public:
  /// A peer may have so many reads unanswered; further ones are refused with `busy`.
  static constexpr unsigned most_reads = 1024;

  explicit region_service(worker_core& worker) noexcept;
  ~region_service();
  region_service(const region_service&) = delete;
  region_service& operator=(const region_service&) = delete;

  void read(endpoint_core& from, const frame& asked);
  void write(endpoint_core& from, const frame& asked, std::span<const std::byte> payload);

  /// Returns whether an answer reads `region` now.
  bool answering(const region_core& region) const noexcept;
  /// Drops the connections whose answers read `region`.
  void cut_off(const region_core& region);

 private:
  friend class read_answer;
  region_core* admit(const frame& asked, bool writes, std::error_code& ec) noexcept;
  void refuse(endpoint_core& to, const frame& asked, std::error_code why);
  void ended(read_answer& answer) noexcept;

  worker_core& worker_;
  intrusive_list<read_answer, answer_tag> answers_;
  std::unique_ptr<pool<read_answer>> idle_;
};

}  // namespace ucx::detail
