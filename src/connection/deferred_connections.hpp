// Connections that a worker's rounds have to see to.
#pragma once

#include <cstddef>

#include "base/intrusive_list.hpp"
#include "connection/owing_connection.hpp"

namespace ucx::detail {

class endpoint_core;
class worker_core;

/// Three lines of connections. Those in the first owe something, which is done behind UCX's
/// callbacks, whatever memory is left. Those in the second have no holder any more, and are
/// destroyed when UCX has let go of them. Those in the third have left UCX's endpoint to UCX until
/// it has nothing in flight. Needs no memory. A part of the connection table, under the worker's
/// lock.
class deferred_connections {
 public:
  explicit deferred_connections(worker_core& worker) noexcept : worker_(worker) {}
  deferred_connections(const deferred_connections&) = delete;
  deferred_connections& operator=(const deferred_connections&) = delete;

  /// REQUIRES: it is not in that line.
  void add_owing(endpoint_core& owing) noexcept;
  void remove_owing(endpoint_core& gone) noexcept;
  /// Has those do it who owe something now; returns false where there was no memory for all of it.
  bool pay_owed() noexcept;

  /// Keeps an endpoint that is not `over()` until it is, or until UCX's worker is gone.
  void defer_destroy(endpoint_core& ended) noexcept;
  void destroy_deferred() noexcept {
    if (!ended_.empty()) destroy_those_over();
  }
  bool has_any() const noexcept { return !ended_.empty(); }
  /// UCX's worker is gone.
  void destroy_all_deferred() noexcept;

  /// Where there are too many, the one that has been there longest is dropped. REQUIRES: UCX does
  /// not call back.
  void add_left(endpoint_core& left) noexcept;
  void remove_left(endpoint_core& dropped) noexcept;
  /// UCX's worker is about to go.
  void drop_all_left() noexcept;

 private:
  static constexpr std::size_t most_left = 16;
  void destroy_those_over() noexcept;

  worker_core& worker_;
  intrusive_list<endpoint_core, owing_tag> owing_;
  intrusive_list<endpoint_core, deferred_destroy_tag> ended_;
  intrusive_list<endpoint_core, left_tag> left_;
};

}  // namespace ucx::detail
