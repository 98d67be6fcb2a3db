// Fetches one message out of the sender's memory by RMA.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "connection/remote_key_owner.hpp"
#include "wire/rma_offer.hpp"

namespace ucx::detail {

class endpoint_core;

/// The hardware reads, a part at a time, and puts the bytes in place. A few parts are in UCX's
/// hands at a time; UCX has the memory until they have ended. Under the worker's lock.
class rma_read final : private remote_key_owner {
 public:
  /// Is told, inside UCX's callbacks, that a part has ended.
  class user {
   public:
    virtual void part_ended() noexcept = 0;

   protected:
    ~user() = default;
  };

  rma_read() noexcept = default;
  rma_read(const rma_read&) = delete;
  rma_read& operator=(const rma_read&) = delete;

  /// Takes the key of a message that fits `into`. Returns false where it is of no use.
  bool begin(endpoint_core& from, user& told, const rma_offer& offer, std::span<std::byte> into);
  /// Hands UCX what there is room for.
  void go() noexcept;
  /// Hands it nothing more.
  void stop() noexcept { stopped_ = true; }
  bool in_flight() const noexcept { return in_flight_ > 0; }
  bool is_whole() const noexcept { return fetched_ == into_.size(); }
  /// Gives the key back, and ends UCX's registration of the memory. REQUIRES: nothing is in flight.
  void end() noexcept;

 private:
  /// UCX has so much of the receiver's memory where the receive is given up, and registers it.
  static constexpr std::size_t part_size = std::size_t{1} << 20U;
  static constexpr unsigned most_in_flight = 2;
  struct part {
    rma_read* owner = nullptr;
    std::size_t size = 0;  // 0: idle
  };

  static void on_ended(void* request, ucs_status_t status, void* part);
  void post(part& next) noexcept;
  void ended(part& done, ucs_status_t status) noexcept;
  void drop_key() noexcept override;

  endpoint_core* from_ = nullptr;
  user* user_ = nullptr;
  ucp_rkey_h key_ = nullptr;
  std::uint64_t address_ = 0;
  std::span<std::byte> into_;
  std::size_t posted_ = 0;
  std::size_t fetched_ = 0;
  unsigned in_flight_ = 0;
  bool stopped_ = false;
  part parts_[most_in_flight];
};

}  // namespace ucx::detail
