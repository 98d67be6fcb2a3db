// Contexts and workers of UCX's as another library of the program makes them, and ours out of them.
#pragma once

#include "ucx/context.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {

enum class foreign_threads {
  one,         ///< UCX's "single".
  one_by_one,  ///< "serialized", as ours are.
  any,         ///< "multi".
};

/// Makes a context with these transports, devices and features, and nothing that this library would
/// add to them: UCX's defaults. Whoever made it gives it back, or has it taken over.
/// Errors: std::runtime_error.
ucp_context* make_foreign_context(const context_options& alike,
                                  foreign_threads used_by = foreign_threads::any);
ucp_worker* make_foreign_worker(ucp_context* of, foreign_threads used_by);
void give_back(ucp_context* made) noexcept;
void give_back(ucp_worker* made) noexcept;

/// Returns what has to be told of such a context.
adopted_context_options told_of(const context_options& alike, ownership owner);

/// Takes over one that is made for it.
context adopt_context(const context_options& alike);
/// The same of a worker, for one thread where these options let no other use it.
worker adopt_worker(const context& parent, const worker_options& options);

}  // namespace ucx::test
