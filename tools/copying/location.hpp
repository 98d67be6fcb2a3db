// A place that a command copies from or to: a URL, or a path.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "ucx/url.hpp"

namespace ucx::tool {

/// A URL of a server, of something that it publishes, or of a directory of a store; or a path of
/// this machine. A value.
class location {
 public:
  /// Errors: bad_url; failure with exit_code::usage (an empty path).
  explicit location(const std::string& text);
  explicit location(url remote) : remote_(std::move(remote)) {}

  bool is_remote() const noexcept { return remote_.has_value(); }
  /// REQUIRES: is_remote().
  const url& remote() const noexcept { return *remote_; }
  /// REQUIRES: not is_remote().
  const std::filesystem::path& local() const noexcept { return local_; }

  /// Returns whether it was written with a slash at its end: then it is meant as a directory.
  bool ends_in_slash() const noexcept { return ends_in_slash_; }
  /// Returns the path's last part; nothing of a server, and of "/". Nothing of what ends with "/."
  /// or "/..", which stands for what is in it: no leaf leads out of where it is put.
  std::string leaf() const;
  /// Returns what `name`, which may have several parts, is within this directory.
  /// Errors: failure with exit_code::usage (it can not be told to a server).
  location below(std::string_view name) const;
  /// Returns what it is beside this, in the same directory, by another last part.
  location beside(std::string_view name) const;

 private:
  std::optional<url> remote_;
  std::filesystem::path local_;
  bool ends_in_slash_ = false;
  bool is_content_ = false;
};

std::string to_string(const location& place);

}  // namespace ucx::tool
