// Two workers of this process, an owner and a reader, connected over a real transport.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/transports/event_loop.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {

/// How the reader reaches the owner. Instead of TCP it is verbs where the environment says so:
/// support/transports/network.hpp.
enum class route {
  tcp_by_address,   ///< By the owner's worker address.
  tcp_by_listener,  ///< By a socket address.
  shared_memory,    ///< One-sided, over `posix,cma,self` and without error handling.
  tcp_to_itself,    ///< Owner and reader are one worker.
  loopback,         ///< One worker, over UCX's transport `self`.
  mapped,           ///< By worker address; the memory that `allocate` makes is mapped.
  borrowed,         ///< By worker address; it is the caller's, and read where it lies.
};

std::string to_string(route over);
std::string name_of(progress_mode mode);

/// Returns the options of a context that reaches nothing but this machine by `over`.
context_options context_options_for(route over);

/// Returns whether the two meet at a listener: over sockets a worker has no address.
bool goes_by_listener(route over);
/// Returns the worker's address; an empty one where it has none.
worker_address address_of(worker& of, route over);

struct pair_options {
  route over = route::tcp_by_address;
  progress_mode owner = progress_mode::sleeping_thread;
  progress_mode reader = progress_mode::caller;
  worker_options owner_defaults = {};   ///< All but `progress`.
  worker_options reader_defaults = {};  ///< All but `progress`.
  bool adopted = false;  ///< Contexts and workers are UCX's own, made elsewhere and taken over.
  /// Regions are read and written by message over verbs, too: a device serves a paused owner's.
  bool by_message = false;
};

/// Makes a name of letters, digits and underscores: of a parameterised test.
std::string to_string(const pair_options& options);

/// For gtest's messages.
inline void PrintTo(const pair_options& options, std::ostream* out) { *out << to_string(options); }

/// Names the instances of a parameterised test.
inline std::string name_of_pair(const testing::TestParamInfo<pair_options>& instance) {
  return to_string(instance.param);
}

/// Returns the combinations of routes and progress modes that tests of regions run with: readers
/// and owners of each mode over each route, of mode `external` with one owner.
std::vector<pair_options> every_pair();
/// Returns pairs of adopted contexts and workers: over TCP and shared memory, every mode at least
/// once on either side.
std::vector<pair_options> adopted_pairs();
/// Returns pairs whose owner answers by messages and can be paused, one for each mode of the
/// reader. Data that is stuck in a socket when its connection is dropped: by listener only, because
/// UCX 1.13 to 1.22 spins on, and crashes by, what that leaves of a connection by worker address.
std::vector<pair_options> message_pairs(route over = route::tcp_by_address);

/// Its members die last to first, and a test may end any of them earlier.
class connected_pair {
 public:
  explicit connected_pair(const pair_options& options = {});

  bool to_itself() const noexcept;
  /// Returns the owner's address, which may be asked for while another thread drives it.
  const worker_address& address() const noexcept { return address_; }
  worker& reader() { return to_itself() ? *owner : *other; }
  context& reader_context() { return to_itself() ? *owner_context : *other_context; }
  /// Returns another connection from the reader to the owner.
  endpoint connect(endpoint_options options = {});

  /// Makes memory that the route can reach; it lives as long as this.
  memory_region allocate(std::size_t size, access granted = access::read_write);
  /// Returns why this route does not go the way that UCXIO_TRANSFER_METHOD forces, in the library's
  /// words; nothing where it does, or where none is forced.
  std::string why_not_forced();
  /// Where a way is forced that is not real for this memory (what may only be written is shown to
  /// nobody): by message. An empty one where that can not be either; `why_not_forced()` says why.
  remote_region open(const memory_region& region);

  /// Stops an owner of mode `external`: it answers nothing until `resume_owner()`.
  void pause_owner() { owner_loop.reset(); }
  void resume_owner() { owner_loop.emplace(*owner); }

  /// Drives the reader, if nobody else does, until `done()` holds; returns whether it did in time.
  bool drive_until(const std::function<bool()>& done,
                   std::chrono::nanoseconds limit = std::chrono::seconds(40));

  const pair_options options;
  std::deque<std::vector<std::byte>> memories;  ///< Of the route `borrowed`.
  std::optional<context> owner_context;
  std::optional<context> other_context;  ///< The reader's, unless the owner reads its own.
  std::optional<worker> owner;
  std::optional<event_loop> owner_loop;
  std::optional<worker> other;
  std::optional<event_loop> reader_loop;
  std::optional<listener> door;
  std::optional<endpoint> connection;

 private:
  worker_address address_;
};

}  // namespace ucx::test
