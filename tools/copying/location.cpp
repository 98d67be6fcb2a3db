#include "copying/location.hpp"

#include <fmt/format.h>

#include <utility>

#include "output/exit_code.hpp"
#include "output/printable.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {

location::location(const std::string& text) {
  if (text.empty()) throw failure(exit_code::usage, "an empty path");
  ends_in_slash_ = text.ends_with('/');
  is_content_ = text == "." || text.ends_with("/.") || text.ends_with("/./");
  if (!url::has_url_scheme(text)) {
    local_ = text;
    return;
  }
  url parsed(text);
  std::string name = parsed.name();
  while (name.ends_with('/') || name.ends_with("/.") || name == ".") name.pop_back();
  remote_ = name.empty() ? parsed.server() : parsed.with_name(name);
}

std::string location::leaf() const {
  if (is_content_) return {};
  if (remote_) {
    const std::string last = remote_->name().substr(remote_->name().rfind('/') + 1);  // npos + 1: 0
    return last == ".." ? std::string() : last;
  }
  std::filesystem::path whole = local_.lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  const std::string name = whole.filename().string();
  return name == "." || name == ".." || name == "/" ? std::string() : name;
}

location location::below(std::string_view name) const {
  location made = *this;
  made.ends_in_slash_ = made.is_content_ = false;
  if (name.empty()) return made;
  if (!remote_) {
    made.local_ /= name;
    return made;
  }
  const std::string whole =
      remote_->name().empty() ? std::string(name) : remote_->name() + '/' + std::string(name);
  std::error_code ec;
  made.remote_ = remote_->with_name(whole, ec);
  if (!ec) return made;
  throw failure(exit_code::usage,
                fmt::format("\"{}\" can not be a name on a server: names are UTF-8 of at most {} "
                            "bytes",
                            printable(name), url::max_name_size));
}

location location::beside(std::string_view name) const {
  location directory = *this;
  if (remote_) {
    const std::size_t slash = remote_->name().rfind('/');
    directory.remote_ = slash == std::string::npos
                            ? remote_->server()
                            : remote_->with_name(remote_->name().substr(0, slash));
  } else {
    directory.local_ = local_.parent_path();
  }
  return directory.below(name);
}

std::string to_string(const location& place) {
  return place.is_remote() ? ucx::to_string(place.remote()) : place.local().string();
}

}  // namespace ucx::tool
