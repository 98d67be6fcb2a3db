// The regions that a client opens, and has open.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "client/client_questions.hpp"
#include "ucx/access.hpp"
#include "ucx/many_files.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "wire/control_message.hpp"

namespace ucx {
class endpoint;
}

namespace ucx::detail {

class remote_region_core;

/// Makes regions of the answers to questions, and remembers those that are open: the server may
/// withdraw them. A part of a client; safe from any thread.
class client_regions {
 public:
  /// REQUIRES: `over` is the connection of `questions`.
  client_regions(client_questions& questions, endpoint& over)
      : questions_(questions), endpoint_(over) {}
  client_regions(const client_regions&) = delete;
  client_regions& operator=(const client_regions&) = delete;

  request start_open(std::string_view name, access wanted, remote_region& made,
                     const io_options& options);
  result<remote_region> open(std::string_view name, access wanted, const io_options& options);
  /// Has the server give a region of a name, by an `open_body` or a `create_body`. `explain` says
  /// more of a refusal.
  template <class Body>
  request start_making(control_type type, Body body, std::string doing, remote_region& made,
                       std::function<failure(failure why)> explain, const io_options& options);
  std::vector<open_result> open_many(std::span<const std::string> names, access wanted,
                                     const io_options& options);

  /// Asks for all of these at once; `region_of()` takes the answers.
  std::vector<client_questions::question> ask_for(std::span<const std::string> names, access wanted,
                                                  const io_options& options);
  /// Makes a region of the answer to an open or create.
  result<remote_region> region_of(std::span<const std::byte> answer, std::string_view name,
                                  access wanted, const std::string& doing);
  /// Returns what is behind a region of this client's.
  result<std::shared_ptr<remote_region_core>> ours(const remote_region& file,
                                                   const std::string& doing) const;
  /// The server has withdrawn it. Under the worker's lock.
  void revoked(std::uint64_t region);
  /// Returns how many were opened so far.
  std::uint64_t opens() const noexcept { return opens_.load(std::memory_order_relaxed); }

 private:
  void remember(std::uint64_t region, const std::shared_ptr<remote_region_core>& opened);

  client_questions& questions_;
  endpoint& endpoint_;
  // Under the worker's lock: those that are open, by the owner's number.
  std::unordered_multimap<std::uint64_t, std::weak_ptr<remote_region_core>> opened_;
  std::size_t sweep_at_ = 64;
  std::atomic<std::uint64_t> opens_{0};
};

}  // namespace ucx::detail
