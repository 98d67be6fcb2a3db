// The server of a store, as the store knows it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace ucx::detail {

class store_core;
class worker_core;

class store_host {
 public:
  /// Returns the worker whose lock the stores are under.
  virtual const std::shared_ptr<worker_core>& home() const noexcept = 0;
  /// Returns how many files all stores of the server have open.
  virtual const std::shared_ptr<std::atomic<std::size_t>>& open_files_of_stores()
      const noexcept = 0;
  virtual std::string url(std::string_view name) const = 0;
  /// Peers find the store no more.
  virtual void withdraw(const store_core& gone) noexcept = 0;
  /// Tells the clients that opened a region that it is withdrawn.
  virtual void tell_withdrawn(std::uint64_t region, std::string name) noexcept = 0;

 protected:
  ~store_host() = default;
};

}  // namespace ucx::detail
