#include "connection/posted_operations.hpp"

#include <algorithm>
#include <utility>

#include "base/if_there_is_memory.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/flush_operation.hpp"

namespace ucx::detail {

void posted_operations::post(operation& started, endpoint_core& connection) {
  ++count_;
  started.group_mark = epochs_.begin();
  started.connection_mark = connection.operations().writes().begin();
  adopt(started);
}

void posted_operations::member_ended(operation& member, std::error_code outcome) noexcept {
  const std::uint64_t epoch = member.group_mark;
  if (outcome) {
    const auto same = [epoch](const failed_operation& each) { return each.epoch == epoch; };
    if (std::none_of(failures_.begin(), failures_.end(), same)) {
      failures_.push_back(
          {epoch,
           {outcome, if_there_is_memory([&] { return member.describe(); }), member.ucx_status()}});
    }
  }
  --count_;
  epochs_.end(epoch);
  member.endpoint()->operations().write_ended(member.connection_mark);
  for (flush_operation* flush = waiting_.front(); flush != nullptr;) {
    flush_operation* next = waiting_.next(*flush);
    if (settled(flush->posted_epoch())) {
      waiting_.remove(*flush);
      flush->posted_settled();
    }
    flush = next;
  }
}

result<void> posted_operations::take_failure(std::uint64_t epoch) noexcept {
  failed_operation* first = nullptr;
  for (failed_operation& each : failures_) {
    if (each.epoch <= epoch && (first == nullptr || each.epoch < first->epoch)) first = &each;
  }
  if (first == nullptr) return {};
  failure why = std::move(first->why);
  std::erase_if(failures_, [epoch](const failed_operation& each) { return each.epoch <= epoch; });
  return why;
}

void posted_operations::add(flush_operation& waiting) noexcept { waiting_.push_back(waiting); }

void posted_operations::remove(flush_operation& waiting) noexcept { waiting_.remove(waiting); }

}  // namespace ucx::detail
