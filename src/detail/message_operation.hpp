// An access to a peer's region that the peer answers by messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "detail/frame.hpp"
#include "detail/intrusive_list.hpp"
#include "detail/operation.hpp"

namespace ucx::detail {

class remote_region_core;
struct waiting_tag {};

/// Known to the peer by `id()`; answers that find no operation of that id are dropped.
class message_operation : public operation, public list_hook<waiting_tag> {
 public:
  std::uint64_t id() const noexcept { return id_; }
  const remote_region_core* region() const noexcept { return region_.get(); }

  /// Sends the question. Called once, when the connection is ready and has room.
  virtual void ask() = 0;
  /// The peer answered with `answer` and `payload`; a lie about either fails the connection.
  virtual void answered(const frame& answer, std::span<const std::byte> payload) = 0;
  bool awaits_peer() const noexcept override { return true; }
  std::string describe() const override;

  void connection_failed(std::error_code why) noexcept override { give_up_for(why); }
  void give_up(errc why) noexcept override { give_up_for(make_error_code(why)); }
  virtual void give_up_for(std::error_code why) noexcept = 0;

  /// Which of its connection's lists it is in: the connection's own mark.
  bool was_asked = false;

 protected:
  /// Starts, with so many further references, and puts the operation on its connection's books.
  void enter(std::shared_ptr<remote_region_core> region, std::uint64_t offset, std::uint64_t length,
             clock::time_point deadline, unsigned further_references = 0);
  /// Takes it off; answers that come later are dropped.
  void leave() noexcept;
  /// Ends the connection: the peer broke the protocol.
  void blame_peer(const char* what);
  frame question(opcode code) const noexcept;

  std::shared_ptr<remote_region_core> region_;
  std::uint64_t offset_ = 0;
  std::uint64_t length_ = 0;
  std::uint64_t id_ = 0;
  bool entered_ = false;
};

/// Finds operations by the id that the peer echoes: an index, and a count of its uses that makes
/// ids of ended operations invalid.
class message_table {
 public:
  std::uint64_t add(message_operation& operation);
  void remove(std::uint64_t id) noexcept;
  message_operation* find(std::uint64_t id) const noexcept;

 private:
  struct slot {
    message_operation* operation = nullptr;
    std::uint32_t uses = 0;
    std::uint32_t next_free = 0;
  };
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  std::vector<slot> slots_;
  std::uint32_t first_free_ = none;
};

}  // namespace ucx::detail
