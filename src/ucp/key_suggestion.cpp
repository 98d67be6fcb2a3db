#include "ucp/key_suggestion.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace ucx::detail {
namespace {

/// Returns how many letters have to be changed, put in or left out to make `b` of `a`.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string suggestion(std::string_view key, const std::vector<std::string>& known) {
  if (key.starts_with("UCX_")) return "; keys go without the prefix UCX_";
  std::multimap<std::size_t, std::string_view> near;
  const std::size_t limit = std::max<std::size_t>(2, key.size() / 4);
  for (const std::string& each : known) {
    const std::size_t apart = distance(key, each);
    if (apart <= limit) near.emplace(apart, each);
  }
  std::string text;
  int count = 0;
  for (const auto& [apart, name] : near) {
    if (text.find(name) != std::string::npos) continue;
    text += text.empty() ? "; did you mean " : " or ";
    text += name;
    if (++count == 3) break;
  }
  return text;
}

}  // namespace ucx::detail
