// The object of a publication: a name of a server's, or a store.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "ucx/context.hpp"
#include "ucx/entry.hpp"

namespace ucx::detail {

/// Shared by the server and the publication. Safe from any thread.
class published {
 public:
  published() noexcept = default;
  published(const published&) = delete;
  published& operator=(const published&) = delete;
  virtual ~published() = default;

  /// Returns whether it is that of a process that this one was forked from.
  bool is_inherited() const noexcept { return made_.is_inherited(); }

  /// Never changes.
  virtual const entry& described() const noexcept = 0;
  virtual std::span<std::byte> bytes() const noexcept = 0;
  virtual std::string url() const = 0;
  virtual bool is_open() const noexcept = 0;
  /// See publication::close(); peers that have not let go by `until` are dropped.
  virtual void close(clock::time_point until = clock::time_point::max()) noexcept = 0;

 private:
  const process_stamp made_;
};

}  // namespace ucx::detail
