// The names that a server publishes, and the stores that have further ones.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ucx/entry.hpp"

namespace ucx::detail {

class published_name;
class store_core;

/// Ordered by the bytes of the names. Safe from any thread; calls nothing while it is locked, but
/// for the filter of a list.
class catalogue {
 public:
  /// Reserves a name, so that what stands behind it is made only once. Returns false if it is
  /// taken.
  bool reserve(const std::string& name);
  /// Puts what was made behind a reserved name, or frees the name.
  void fill(std::shared_ptr<published_name> made);
  void give_up(const std::string& name) noexcept;

  /// Takes `gone` out.
  void remove(const published_name& gone) noexcept;
  std::shared_ptr<published_name> find(std::string_view name) const;
  std::vector<std::shared_ptr<published_name>> all() const;
  /// Returns the one behind `last` (null: the first), or nothing. Takes no memory.
  std::shared_ptr<published_name> next(const published_name* last) const noexcept;
  std::size_t size() const;

  struct page {
    std::vector<entry> entries;
    bool more = false;
    /// There may be more behind this, and there is no entry; else empty.
    std::string looked_to = {};
  };
  using filter = std::function<bool(const entry&)>;
  /// It passes over so many names at a time.
  static constexpr std::size_t most_passed_over = 256;
  /// Returns the names behind `after` that are `wanted`, as many as `budget` bytes of a message
  /// take. It is one at least, unless too many before it are not wanted.
  page list(std::string_view after, std::size_t budget, const filter& wanted) const;

  /// Returns false if there is a store of that prefix, or a name like it.
  bool add_store(std::shared_ptr<store_core> made);
  void remove_store(const store_core& gone) noexcept;
  std::vector<std::shared_ptr<store_core>> stores() const;
  std::shared_ptr<store_core> next_store(const store_core* last) const noexcept;  ///< Likewise.

  /// A name of a store's: the path of a file, or of a directory.
  struct stored_name {
    std::shared_ptr<store_core> store;
    std::string path;
  };
  /// Returns the store that such a name belongs to, whatever it has there; nothing where no store
  /// has it.
  stored_name find_stored(std::string_view name) const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::string, std::shared_ptr<store_core>, std::less<>> stores_;  // by prefix
  // Reserved names have nothing behind them.
  std::map<std::string, std::shared_ptr<published_name>, std::less<>> names_;
};

}  // namespace ucx::detail
