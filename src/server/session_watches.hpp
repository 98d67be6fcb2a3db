// The waits of one client of a server for files to become longer.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <system_error>
#include <vector>

#include "file/file_facts.hpp"
#include "ucx/entry.hpp"
#include "wire/control_message.hpp"

namespace ucx::detail {

class exposed_region;
class file_watcher;

/// Answers come when a file has changed its size, or when the client has waited as long as it
/// wanted to. There are none once this is gone. Under the worker's lock.
class session_watches {
 public:
  using refusal = std::function<void(const control_header&, control_type, std::error_code)>;
  using sender = std::function<void(const std::vector<std::byte>&)>;

  /// A client may wait for so many at a time; further ones are refused with `busy`.
  static constexpr std::size_t most_waiting = 1024;
  /// However long it wants to wait, it is answered then.
  static constexpr std::chrono::seconds longest_wait{60};

  session_watches(file_watcher& by, refusal refuse, sender send);
  session_watches(const session_watches&) = delete;
  session_watches& operator=(const session_watches&) = delete;
  ~session_watches();

  /// `described` is what the client is told, but for what the file says of itself by then. Memory
  /// is as long as it ever was.
  void measure(const control_header& asked, const measure_body& body,
               const std::shared_ptr<exposed_region>& region, entry described);
  /// Refuses what waits for a region that is no more.
  void withdrawn(std::uint64_t region);
  /// Forgets everything.
  void close() noexcept;

 private:
  struct question {
    control_header asked;
    std::uint64_t region = 0;
    std::weak_ptr<exposed_region> measured;
    entry described;
    std::uint64_t look = 0;  // the watcher's number of it
  };
  void answer(std::uint64_t number, std::error_code ec, const file_facts& facts);

  file_watcher& watcher_;
  refusal refuse_;
  sender send_;
  std::map<std::uint64_t, question> waiting_;
  std::uint64_t last_ = 0;
  std::shared_ptr<session_watches*> self_;  // null once this is gone
};

}  // namespace ucx::detail
