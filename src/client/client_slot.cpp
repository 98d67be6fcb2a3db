#include "client/client_slot.hpp"

#include "client/client_core.hpp"

namespace ucx::detail {
namespace {

/// Counts somebody for as long as it is there.
class counted {
 public:
  explicit counted(std::atomic<std::size_t>& among) noexcept : among_(among) {
    among_.fetch_add(1, std::memory_order_acq_rel);
  }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;
  ~counted() { among_.fetch_sub(1, std::memory_order_acq_rel); }

 private:
  std::atomic<std::size_t>& among_;
};

}  // namespace

result<std::shared_ptr<client_core>> client_slot::get(const connector& connect) {
  const std::uint64_t before = ended_.load(std::memory_order_acquire);
  const counted asking(asking_);
  const std::lock_guard guard(connecting_);
  if (std::shared_ptr<client_core> client = client_.lock()) {
    client->worker().progress();  // it may not have been driven for long
    if (!client->status()) return client;
  }
  if (ended_.load(std::memory_order_relaxed) != before && failure_) return *failure_;
  auto client = connect();
  client_ = client ? *client : nullptr;
  failure_ = client ? std::nullopt : std::optional(client.why());
  ended_.fetch_add(1, std::memory_order_release);
  return client;
}

bool client_slot::is_idle() {
  const std::lock_guard guard(connecting_);
  return client_.expired();
}

}  // namespace ucx::detail
