#include "base/name_pattern.hpp"

namespace ucx::detail {

std::optional<name_pattern> name_pattern::parse(std::string_view text) {
  name_pattern made;
  made.steps_.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == '\\') {
      if (++i == text.size()) return std::nullopt;
      made.steps_.push_back({kind::letter, text[i]});
    } else if (letter == '*') {
      const bool is_deep = text.substr(i, 2) == "**";
      made.steps_.push_back({is_deep ? kind::deep_run : kind::run});
      if (is_deep) ++i;
    } else {
      made.steps_.push_back({letter == '?' ? kind::one : kind::letter, letter});
    }
  }
  made.ends_open_ = !made.steps_.empty() && made.steps_.back().what == kind::deep_run;
  return made;
}

bool name_pattern::fits(const step& next, char letter) const noexcept {
  return next.what == kind::one ? letter != '/'
                                : next.what == kind::letter && next.letter == letter;
}

/// Only the last run of each kind is tried again. A later run takes what an earlier run of the
/// same kind could take instead, and `**` takes what `*` does.
name_pattern::outcome name_pattern::look(std::string_view name, retry run) const noexcept {
  retry deep_run;
  std::size_t at = 0;
  std::size_t next = 0;
  for (;;) {
    if (next < steps_.size() && steps_[next].what == kind::deep_run) {
      deep_run = {++next, at};
      run = {};
    } else if (next < steps_.size() && steps_[next].what == kind::run) {
      run = {++next, at};
    } else if (at == name.size()) {
      return next == steps_.size() ? outcome::whole : outcome::part;
    } else if (next < steps_.size() && fits(steps_[next], name[at])) {
      ++next;
      ++at;
    } else if (run.step != 0 && name[run.at] != '/') {
      at = ++run.at;
      next = run.step;
    } else if (deep_run.step != 0) {
      at = ++deep_run.at;
      next = deep_run.step;
      run = {};
    } else {
      return outcome::none;
    }
  }
}

}  // namespace ucx::detail
