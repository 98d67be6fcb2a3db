#include "message/receive_place.hpp"

#include "memory/buffer_pool_core.hpp"
#include "ucx/buffer.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"

namespace ucx::detail {

result<receive_place> receive_place::of(const receive_target& into) {
  receive_place place;
  if (const auto* const run = run_of(into)) {
    place.only = *run;
  } else if (const auto* const runs = std::get_if<receive_target::run_list>(&into.form_)) {
    place.runs = *runs;
  } else if (const auto* const sized = std::get_if<receive_target::sized_buffer>(&into.form_)) {
    place.made = sized->made;
    place.most = sized->max_size;
  } else if (const auto* const parts = std::get_if<receive_target::sized_parts>(&into.form_)) {
    place.parts = parts->made;
    place.most = parts->max_size;
  } else if (const auto* const pooled = std::get_if<receive_target::pooled_buffer>(&into.form_)) {
    place.pool = core_access::core(*pooled->pool);
    if (!place.pool) {
      return failure{errc::closed, "receive into a buffer of a pool that was moved from"};
    }
    if (place.pool->is_inherited()) {
      return failure{errc::forked_child, "receive into a buffer of a pool"};
    }
    *pooled->made = buffer();
    place.made = pooled->made;
  } else {
    return failure{errc::not_supported,
                   "receive into memory of the sender's kind by an endpoint or a worker: take the "
                   "message first, and receive it from there"};
  }
  return place;
}

}  // namespace ucx::detail
