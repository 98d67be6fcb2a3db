// Local memory that peers may reach, and its registration with UCX.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "os/huge_page.hpp"
#include "region/exposed/exposed_region.hpp"
#include "region/exposed/region_record.hpp"
#include "ucp/shared_memory.hpp"
#include "worker/context_core.hpp"

namespace ucx::detail {

/// Memory of the host's that is exposed.
struct host_memory {
  std::byte* bytes = nullptr;  ///< Null: to be allocated.
  std::size_t size = 0;
  memory_place place = {};                      ///< The host's, or pinned.
  std::shared_ptr<const void> keeps = nullptr;  ///< Keeps the memory while peers reach it.
};

class memory_region_core final : public exposed_region {
 public:
  static result<std::shared_ptr<exposed_region>> make(std::shared_ptr<context_core> context,
                                                      host_memory memory, access granted);
  /// Exposes what the program has registered, and unmaps. Errors: as memory_region::adopt.
  static result<std::shared_ptr<exposed_region>> adopt(std::shared_ptr<context_core> context,
                                                       ucp_mem_h registered, access granted);
  ~memory_region_core() override;

  std::uint64_t size() const noexcept override { return size_; }
  memory_kind kind() const noexcept override { return kind_; }
  memory_place whereabouts() const noexcept override { return place_; }
  std::span<std::byte> bytes() const noexcept override { return {data_, size_}; }
  std::shared_ptr<file_source> source() const noexcept override { return nullptr; }
  ucp_mem* registration() const noexcept override { return memory_; }
  remote_descriptor descriptor() const override;
  owned_descriptor open_file(access rights) const noexcept override;

 private:
  void release() noexcept override;
  using exposed_region::exposed_region;
  result<void> map(std::byte* bytes, std::size_t size);
  result<void> take(ucp_mem_h registered);
  result<void> allocate_shared(std::size_t size);
  void allocate_privately(std::size_t size);
  result<void> pack_key();
  bool does_without_key(ucs_status_t status) const;
  void tell_of_no_key(ucs_status_t status) const;
  void lend();

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  memory_kind kind_ = memory_kind::host;
  memory_place place_;
  std::shared_ptr<const void> keeps_;
  bool shareable_ = false;
  aligned_memory owned_;
  std::unique_ptr<shared_memory> file_;
  std::unique_ptr<region_record> record_;  // where others of the host read it
  cma_handle loan_;
  ucp_mem_h memory_ = nullptr;
  bool adopted_ = false;  // it is the program's
  std::vector<std::byte> key_;
};

}  // namespace ucx::detail
