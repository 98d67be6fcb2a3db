// The digests that one client of a server asks for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <system_error>
#include <vector>

#include "file/file_hasher.hpp"
#include "wire/control_message.hpp"

namespace ucx::detail {

class exposed_region;

/// Answers come when the disk has been read; not at all once this is gone. Under the worker's lock.
class session_digests {
 public:
  using refusal = std::function<void(const control_header&, control_type, std::error_code)>;
  using sender = std::function<void(const std::vector<std::byte>&)>;

  /// A client may have so many questions unanswered, or withdrawn and still with the thread;
  /// further ones are refused with `busy`.
  static constexpr std::size_t most_unanswered = 16;

  session_digests(file_hasher& by, refusal refuse, sender send);
  session_digests(const session_digests&) = delete;
  session_digests& operator=(const session_digests&) = delete;
  ~session_digests();

  void digest(const control_header& asked, const digest_body& body,
              const std::shared_ptr<exposed_region>& region);
  /// Refuses what is asked of a region that is no more.
  void withdrawn(std::uint64_t region);
  /// Forgets everything.
  void close() noexcept;

 private:
  struct question {
    control_header asked;
    std::uint64_t region = 0;
    file_hasher::asked asking;
  };
  void withdraw(const question& unwanted) noexcept;
  void answer(std::uint64_t number, std::error_code ec, std::vector<content_digest> digests);

  file_hasher& hasher_;
  refusal refuse_;
  sender send_;
  std::map<std::uint64_t, question> waiting_;
  std::vector<std::weak_ptr<file_hasher::question>> leaving_;  // withdrawn
  std::uint64_t last_ = 0;
  std::shared_ptr<session_digests*> self_;  // null once this is gone
};

}  // namespace ucx::detail
