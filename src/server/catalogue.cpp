#include "server/catalogue.hpp"

#include <algorithm>
#include <utility>

#include "server/published_name.hpp"
#include "store/store_core.hpp"
#include "wire/control_message.hpp"

namespace ucx::detail {

bool catalogue::reserve(const std::string& name) {
  const std::unique_lock guard(mutex_);
  return !stores_.contains(name) && names_.try_emplace(name).second;
}

void catalogue::fill(std::shared_ptr<published_name> made) {
  const std::unique_lock guard(mutex_);
  names_[made->described().name] = std::move(made);
}

void catalogue::give_up(const std::string& name) noexcept {
  const std::unique_lock guard(mutex_);
  const auto found = names_.find(name);
  if (found != names_.end() && !found->second) names_.erase(found);
}

void catalogue::remove(const published_name& gone) noexcept {
  std::shared_ptr<published_name> last;  // outlives the lock
  const std::unique_lock guard(mutex_);
  const auto found = names_.find(gone.described().name);
  if (found == names_.end() || found->second.get() != &gone) return;
  last = std::move(found->second);
  names_.erase(found);
}

std::shared_ptr<published_name> catalogue::find(std::string_view name) const {
  const std::shared_lock guard(mutex_);
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<published_name>> catalogue::all() const {
  const std::shared_lock guard(mutex_);
  std::vector<std::shared_ptr<published_name>> found;
  found.reserve(names_.size());
  for (const auto& [name, published] : names_) {
    if (published) found.push_back(published);
  }
  return found;
}

std::shared_ptr<published_name> catalogue::next(const published_name* last) const noexcept {
  const std::shared_lock guard(mutex_);
  auto at = last == nullptr ? names_.begin() : names_.upper_bound(last->described().name);
  while (at != names_.end() && !at->second) ++at;
  return at == names_.end() ? nullptr : at->second;
}

std::size_t catalogue::size() const {
  const std::shared_lock guard(mutex_);
  return names_.size();
}

catalogue::page catalogue::list(std::string_view after, std::size_t budget,
                                const filter& wanted) const {
  page made;
  std::vector<std::shared_ptr<published_name>> found;
  std::shared_lock guard(mutex_);
  std::size_t used = 0;
  std::size_t passed_over = 0;
  for (auto at = names_.upper_bound(after); at != names_.end(); ++at) {
    if (!at->second) continue;
    const entry& described = at->second->described();
    if (!wanted(described)) {
      if (++passed_over < most_passed_over) continue;
      made.more = true;
      if (found.empty()) made.looked_to = at->first;
      break;
    }
    used += encoded_size(described);
    if (used > budget && !found.empty()) {
      made.more = true;
      break;
    }
    found.push_back(at->second);
  }
  guard.unlock();
  for (const std::shared_ptr<published_name>& each : found) {
    made.entries.push_back(each->described_now());
  }
  return made;
}

bool catalogue::add_store(std::shared_ptr<store_core> made) {
  const std::unique_lock guard(mutex_);
  const std::string& prefix = made->options().prefix;
  return !names_.contains(prefix) && stores_.try_emplace(prefix, std::move(made)).second;
}

void catalogue::remove_store(const store_core& gone) noexcept {
  std::shared_ptr<store_core> last;  // outlives the lock
  const std::unique_lock guard(mutex_);
  const auto found = stores_.find(gone.options().prefix);
  if (found == stores_.end() || found->second.get() != &gone) return;
  last = std::move(found->second);
  stores_.erase(found);
}

std::vector<std::shared_ptr<store_core>> catalogue::stores() const {
  const std::shared_lock guard(mutex_);
  std::vector<std::shared_ptr<store_core>> found;
  found.reserve(stores_.size());
  for (const auto& [prefix, store] : stores_) found.push_back(store);
  return found;
}

std::shared_ptr<store_core> catalogue::next_store(const store_core* last) const noexcept {
  const std::shared_lock guard(mutex_);
  const auto at = last == nullptr ? stores_.begin() : stores_.upper_bound(last->options().prefix);
  return at == stores_.end() ? nullptr : at->second;
}

catalogue::stored_name catalogue::find_stored(std::string_view name) const {
  const std::shared_lock guard(mutex_);
  if (stores_.empty()) return {};
  // The longest prefix wins: a store may lie where another one has a directory.
  for (std::string_view prefix = name; !prefix.empty();) {
    const auto found = stores_.find(prefix);
    if (found != stores_.end()) {
      return {found->second, std::string(name.substr(std::min(name.size(), prefix.size() + 1)))};
    }
    const std::size_t slash = prefix.rfind('/');
    prefix = prefix.substr(0, slash == std::string_view::npos ? 0 : slash);
  }
  const auto whole = stores_.find(std::string_view());
  if (whole == stores_.end()) return {};
  return {whole->second, std::string(name)};
}

}  // namespace ucx::detail
