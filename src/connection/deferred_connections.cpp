#include "connection/deferred_connections.hpp"

#include "connection/endpoint_core.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void deferred_connections::add_owing(endpoint_core& owing) noexcept {
  owing_.push_back(owing);
  worker_.agenda().owed = true;
  worker_.wake_driver();
}

void deferred_connections::remove_owing(endpoint_core& gone) noexcept {
  owing_.remove(gone);
  worker_.agenda().owed = !owing_.empty();
}

void deferred_connections::defer_destroy(endpoint_core& ended) noexcept { ended_.push_back(ended); }

bool deferred_connections::pay_owed() noexcept {
  bool all = true;
  for (std::size_t left = owing_.size(); left > 0 && !owing_.empty(); --left) {
    endpoint_core& each = *owing_.front();
    owing_.remove(each);
    all = each.pay() && all;
  }
  worker_.agenda().owed = !owing_.empty();
  return all;
}

void deferred_connections::destroy_those_over() noexcept {
  for (std::size_t left = ended_.size(); left > 0; --left) {
    endpoint_core& each = *ended_.front();
    ended_.remove(each);
    if (each.over()) {
      delete &each;
    } else {
      ended_.push_back(each);
    }
  }
}

void deferred_connections::add_left(endpoint_core& left) noexcept {
  left_.push_back(left);
  if (left_.size() > most_left) left_.front()->drop_left();
}

void deferred_connections::remove_left(endpoint_core& dropped) noexcept {
  if (static_cast<list_hook<left_tag>&>(dropped).linked()) left_.remove(dropped);
}

void deferred_connections::drop_all_left() noexcept {
  while (endpoint_core* const each = left_.front()) each->drop_left();
}

void deferred_connections::destroy_all_deferred() noexcept {
  while (endpoint_core* const each = ended_.front()) {
    ended_.remove(*each);
    delete each;
  }
}

}  // namespace ucx::detail
