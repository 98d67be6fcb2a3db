// A message that is not sent yet, a flush, or a close: what the caller has of it is its address.
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/intrusive_list.hpp"
#include "base/owned_descriptor.hpp"
#include "carrier/segment.hpp"

namespace ucx::detail {

class carrier_worker;
struct carrier_request;

struct request_tag {};
using request_list = intrusive_list<carrier_request, request_tag>;

/// It is in one list at a time: its endpoint's while it waits, and its worker's when it is done.
/// It goes when it was told and the caller has freed it.
struct carrier_request : list_hook<request_tag> {
  static constexpr std::size_t most_idle = 256;

  carrier_worker* worker = nullptr;
  ucp_send_nbx_callback_t told = nullptr;
  void* told_with = nullptr;
  ucs_status_t status = UCS_OK;
  bool is_over = false;   ///< Its caller was told.
  bool is_freed = false;  ///< Its caller needs it no more.

  std::array<std::byte, segment_head::size> head = {};
  std::span<const std::byte> header;
  std::span<const std::byte> payload;
  std::vector<std::byte>
      kept;               ///< The bytes of `header` and `payload`, where the caller's do not last.
  owned_descriptor file;  ///< That goes with the first byte.
  std::uint64_t number = 0;  ///< Of a message: its place. Of a flush: that of the last before it.
  std::size_t sent = 0;      ///< Of head, header and payload in a row.
  request_list* waits_in = nullptr;  ///< Nothing of the message has gone; null once it has begun.

  std::size_t size() const noexcept { return head.size() + header.size() + payload.size(); }
  /// From here on `header` and `payload` are copies.
  void keep_copy() {
    std::vector<std::byte> copied(header.begin(), header.end());
    copied.insert(copied.end(), payload.begin(), payload.end());
    kept = std::move(copied);
    const std::span<const std::byte> all(kept);
    header = all.first(header.size());
    payload = all.subspan(header.size());
  }
  void clear() noexcept {
    told = nullptr;
    told_with = nullptr;
    status = UCS_OK;
    is_over = is_freed = false;
    header = payload = {};
    kept.clear();
    file = owned_descriptor();
    sent = 0;
    waits_in = nullptr;
  }
};

}  // namespace ucx::detail
