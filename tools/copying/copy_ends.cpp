#include "copying/copy_ends.hpp"

#include "copying/agent_ends.hpp"
#include "copying/local_ends.hpp"
#include "copying/remote_ends.hpp"
#include "output/exit_code.hpp"

namespace ucx::tool {
namespace {

constexpr std::string_view partial_ending = ".ucxio-part";

}  // namespace

std::unique_ptr<copy_source> open_source(const location& from, const copy_terms& terms,
                                         server_clients& clients) {
  if (!from.is_remote()) return open_local_source(from.local());
  if (terms.source_codec != codec::none) return open_agent_source(from.remote(), terms, clients);
  return open_remote_source(from.remote(), terms, clients);
}

std::unique_ptr<copy_target> open_target(const location& to, std::uint64_t size,
                                         const copy_terms& terms, server_clients& clients) {
  if (is_partial_name(to.leaf())) {
    throw failure(exit_code::usage,
                  to_string(to) + ": this is the name of an unfinished copy; it is left out");
  }
  if (!to.is_remote()) return open_local_target(to.local(), size, terms);
  if (terms.target_codec != codec::none) {
    return open_agent_target(to.remote(), size, terms, clients);
  }
  return open_remote_target(to.remote(), size, terms, clients);
}

std::string partial_name(const std::string& leaf) {
  constexpr std::size_t longest = 200;  // of the 255 bytes that a name may have
  std::string stem = leaf;
  if (stem.size() > longest) {
    const content_digest whole = digest_of(std::as_bytes(std::span(leaf)));
    stem = to_string(whole);
  }
  return '.' + stem + std::string(partial_ending);
}

bool is_partial_name(std::string_view leaf) noexcept {
  return leaf.starts_with('.') && leaf.ends_with(partial_ending);
}

}  // namespace ucx::tool
