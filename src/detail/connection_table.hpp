// Every connection of a worker: found by session, watched, and (peers that nobody here asked for)
// owned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "detail/frame.hpp"
#include "detail/ucp_api.hpp"

namespace ucx::detail {

class endpoint_core;
class worker_core;

class connection_table {
 public:
  explicit connection_table(worker_core& worker) noexcept : worker_(worker) {}
  connection_table(const connection_table&) = delete;
  connection_table& operator=(const connection_table&) = delete;

  void add(endpoint_core& made);
  void remove(endpoint_core& gone) noexcept;
  /// The endpoint got its session.
  void name(endpoint_core& named);

  endpoint_core* find(std::uint64_t session) const noexcept;
  std::size_t size() const noexcept { return all_.size(); }

  /// A peer says hello: inside UCX's callback, so the answer is deferred.
  void hello(const frame& said, std::span<const std::byte> payload, ucp_ep_h reply_endpoint);
  /// Takes a connection that nobody else holds, until the peer leaves.
  void serve(std::shared_ptr<endpoint_core> peer);
  /// Lets go of served peers that are gone.
  void reap();
  /// Looks at every connection's clock; returns when to look again.
  clock::time_point tick(clock::time_point now);
  /// Drops all served peers and answers nobody any more: the worker ends.
  void close() noexcept;

 private:
  void answer_hello(const frame& said, std::vector<std::byte> address, ucp_ep_h reply_endpoint);
  endpoint_core* connect_back(std::span<const std::byte> address);

  worker_core& worker_;
  std::vector<endpoint_core*> all_;
  std::unordered_map<std::uint64_t, endpoint_core*> by_session_;
  std::vector<std::shared_ptr<endpoint_core>> served_;
  bool closed_ = false;
};

}  // namespace ucx::detail
