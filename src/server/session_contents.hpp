// Short files that one client of a server fetches or stores whole.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "server/catalogue.hpp"
#include "server/session_rights.hpp"
#include "wire/control_message.hpp"

namespace ucx::detail {

/// Answers at once what the system has at hand. Files to be stored are answered for when the disk
/// has them. They are not once this is gone: the files are there, or will be, all the same. Nothing
/// is opened that lasts. Under the worker's lock.
class session_contents {
 public:
  using refusal = std::function<void(const control_header&, control_type, std::error_code)>;
  using sender = std::function<void(const std::vector<std::byte>&)>;

  /// A client may have so many questions, and files, unanswered; further ones are refused with
  /// `busy`.
  static constexpr std::size_t most_unanswered = 256;
  static constexpr std::size_t most_files_unanswered = 1024;

  session_contents(const catalogue& names, const session_rights& rights, std::size_t longest,
                   refusal refuse, sender send);
  session_contents(const session_contents&) = delete;
  session_contents& operator=(const session_contents&) = delete;
  ~session_contents() { *self_ = nullptr; }

  void put(const control_header& asked, put_body&& body);
  void fetch(const control_header& asked, const fetch_body& body);

 private:
  struct storing;

  std::optional<std::vector<std::byte>> content_now(const std::string& name,
                                                    std::size_t most) const;
  void stored(const storing& part);

  const catalogue& catalogue_;
  const session_rights& rights_;
  const std::size_t longest_;
  refusal refuse_;
  sender send_;
  std::size_t unanswered_ = 0;
  std::size_t files_unanswered_ = 0;
  std::shared_ptr<session_contents*> self_;  // null once this is gone
};

}  // namespace ucx::detail
