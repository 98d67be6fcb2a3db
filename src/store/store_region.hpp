// A file of a store that a client has open.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "file/held_file.hpp"
#include "region/exposed/exposed_region.hpp"
#include "store/file_account.hpp"
#include "store/store_file.hpp"

namespace ucx::detail {

class store_core;
class worker_core;

/// Where a region's file stands.
struct store_place {
  std::string path;
  /// The name in the spool, while the file has no other one. Then `exclusive` says whether there
  /// may be none of that name when it gets one.
  std::string spooled = {};
  bool exclusive = false;
  bool is_committing = false;  ///< Then what is in the spool is the commit's.
  bool is_lost = false;        ///< A commit failed, and it was thrown away.
  bool is_written = false;     ///< The client is the one writer of `path`.
};

/// Messages are the only way to it. Under the worker's lock, but for what exposed_region says.
class store_region final : public exposed_region,
                           public write_sink,
                           public std::enable_shared_from_this<store_region> {
 public:
  static std::shared_ptr<store_region> make(std::shared_ptr<context_core> context,
                                            const std::shared_ptr<store_core>& store,
                                            std::shared_ptr<store_file> file, store_place place,
                                            access granted, std::uint64_t size);
  ~store_region() override;

  std::uint64_t size() const noexcept override;
  /// The quota counts what its clients write, and not what others do to the file.
  void reach(std::uint64_t size) noexcept override;
  std::uint64_t writable_size() const noexcept override;
  memory_kind kind() const noexcept override { return memory_kind::host; }
  std::span<std::byte> bytes() const noexcept override { return {}; }
  std::shared_ptr<file_source> source() const noexcept override { return file_.get(); }
  std::shared_ptr<store_file> stored() const noexcept { return file_.get(); }
  remote_descriptor descriptor() const override { return describe(); }
  std::shared_ptr<write_sink> sink() noexcept override { return shared_from_this(); }

  std::size_t window() const noexcept { return window_; }
  store_place& place() noexcept { return place_; }
  const std::shared_ptr<file_account>& account() const noexcept { return account_; }

  /// Hands the bytes to the disk's thread, and confirms them when they are in the file. Under the
  /// lock of the connection's worker; where that is not the store's, the store's does it.
  void write(endpoint_core& from, const frame& asked, std::span<const std::byte> payload) override;

 private:
  store_region(std::shared_ptr<context_core> context, const std::shared_ptr<store_core>& store,
               std::shared_ptr<store_file> file, store_place place, access granted,
               std::uint64_t size);
  using staging = std::shared_ptr<std::vector<std::byte>>;
  /// Is told how a write ended.
  struct writer {
    std::weak_ptr<endpoint_core> peer;
    std::weak_ptr<worker_core> worker = {};  // of the peer, where it is not the store's own
    bool is_elsewhere = false;

    void answer(const frame& asked, std::error_code ec) const;
  };
  void release() noexcept override;
  void hand_over(worker_core& home, endpoint_core& from, const frame& asked,
                 std::span<const std::byte> payload);
  void take(writer from, const frame& asked, std::span<const std::byte> payload);
  staging copy_of(std::span<const std::byte> payload);
  void put_back(staging used);

  const std::weak_ptr<store_core> store_;
  const std::weak_ptr<worker_core> home_;
  const std::uint64_t limit_;
  const std::size_t window_;
  held_file<store_file> file_;
  store_place place_;
  const std::shared_ptr<file_account> account_;
  std::atomic<std::uint64_t> seen_size_{0};
  std::atomic<std::uint64_t> handed_over_{0};  // bytes on their way between workers
  std::size_t unwritten_ = 0;                  // of the window, by what the disk has not taken yet
  std::size_t idle_bytes_ = 0;
  std::vector<staging> idle_;  // to be used again: new memory costs more than a copy
};

}  // namespace ucx::detail
