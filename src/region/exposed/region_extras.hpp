// Requests of peers beyond reading and writing a region: batches, atomics, notifications.
#pragma once

#include <cstddef>
#include <span>
#include <system_error>

#include "base/intrusive_list.hpp"
#include "base/pool.hpp"
#include "region/exposed/batch_answer.hpp"
#include "ucx/access.hpp"
#include "wire/frame.hpp"

namespace ucx::detail {

class driven_connection;
class endpoint_core;
class exposed_region;
class range_list;
class region_service;

/// A part of the owner's side: each access is admitted as reads and writes are. Batches and atomics
/// are of the host's memory only: files and devices refuse them. Everything happens under the
/// worker's lock.
class region_extras {
 public:
  /// So many answers to one peer may be under way when it asks for a batch, whose bytes are copies.
  static constexpr unsigned most_reads_beside_batches = 512;

  explicit region_extras(region_service& service) noexcept : service_(service) {}
  /// REQUIRES: UCX's worker is gone, with or without a word about what it had left to send.
  ~region_extras();
  region_extras(const region_extras&) = delete;
  region_extras& operator=(const region_extras&) = delete;

  void read_batch(endpoint_core& from, const frame& asked, std::span<const std::byte> payload);
  void write_batch(endpoint_core& from, const frame& asked, std::span<const std::byte> payload);
  void perform_atomic(endpoint_core& from, const frame& asked, std::span<const std::byte> payload);
  void notify(endpoint_core& from, const frame& asked);
  static void answer_notification(endpoint_core& from, const frame& asked, std::error_code ec);

  /// Ends what is under way to a connection that is lost, and not in UCX's hands.
  void connection_failed(const driven_connection& connection);
  /// A batch that was answered.
  void ended(batch_answer& answer) noexcept;

 private:
  exposed_region* admit_memory(const endpoint_core& from, const frame& asked, access wanted,
                               std::error_code& ec) noexcept;
  exposed_region* admit_batch(const endpoint_core& from, const frame& asked,
                              const range_list& ranges, access wanted,
                              std::error_code& ec) noexcept;

  region_service& service_;
  intrusive_list<batch_answer, batch_tag> batches_;
  pool<batch_answer> idle_{32};
};

}  // namespace ucx::detail
