// The names of enumerators, as users print them.
#include "ucx/access.hpp"
#include "ucx/access_rules.hpp"
#include "ucx/connection_report.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/endpoint_options.hpp"
#include "ucx/entry.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/payload.hpp"
#include "ucx/remote_file.hpp"
#include "ucx/request.hpp"
#include "ucx/tensor.hpp"
#include "ucx/worker.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace ucx {

namespace {

/// The members of a set.
template <class Set, std::size_t Count>
std::string names_of_set(Set value, const std::pair<Set, std::string_view> (&names)[Count]) {
  std::string text;
  for (const auto& [each, name] : names) {
    if ((static_cast<unsigned>(value) & static_cast<unsigned>(each)) == 0) continue;
    if (!text.empty()) text += '|';
    text += name;
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::string to_string(feature value) {
  constexpr std::pair<feature, std::string_view> names[] = {{feature::rma, "rma"},
                                                            {feature::am, "am"},
                                                            {feature::wakeup, "wakeup"},
                                                            {feature::tag, "tag"},
                                                            {feature::stream, "stream"}};
  return names_of_set(value, names);
}

std::string to_string(access_right value) {
  constexpr std::pair<access_right, std::string_view> names[] = {
      {access_right::list, "list"},     {access_right::read, "read"},
      {access_right::write, "write"},   {access_right::create, "create"},
      {access_right::remove, "remove"}, {access_right::pipes, "pipes"},
      {access_right::agent, "agent"},   {access_right::fabric, "fabric"},
      {access_right::call, "call"}};
  return names_of_set(value, names);
}

template <>
std::string_view detail::enum_name(atomic_operation value) noexcept {
  switch (value) {
    case atomic_operation::load:
      return "load";
    case atomic_operation::store:
      return "store";
    case atomic_operation::compare_exchange:
      return "compare_exchange";
    case atomic_operation::add:
      return "add";
    case atomic_operation::bit_and:
      return "bit_and";
    case atomic_operation::bit_or:
      return "bit_or";
    case atomic_operation::bit_xor:
      return "bit_xor";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(operation_kind value) noexcept {
  switch (value) {
    case operation_kind::none:
      return "none";
    case operation_kind::read:
      return "read";
    case operation_kind::write:
      return "write";
    case operation_kind::atomic:
      return "atomic";
    case operation_kind::notify:
      return "notify";
    case operation_kind::wait_notify:
      return "wait_notify";
    case operation_kind::flush:
      return "flush";
    case operation_kind::send:
      return "send";
    case operation_kind::receive:
      return "receive";
    case operation_kind::stream_send:
      return "stream_send";
    case operation_kind::stream_receive:
      return "stream_receive";
    case operation_kind::close:
      return "close";
    case operation_kind::call:
      return "call";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(precedence value) noexcept {
  switch (value) {
    case precedence::options:
      return "options";
    case precedence::environment:
      return "environment";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(ownership value) noexcept {
  switch (value) {
    case ownership::borrow:
      return "borrow";
    case ownership::take:
      return "take";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(creation value) noexcept {
  switch (value) {
    case creation::replace:
      return "replace";
    case creation::exclusive:
      return "exclusive";
    case creation::append:
      return "append";
    case creation::overwrite:
      return "overwrite";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(stream_amount value) noexcept {
  switch (value) {
    case stream_amount::some:
      return "some";
    case stream_amount::all:
      return "all";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(close_mode value) noexcept {
  switch (value) {
    case close_mode::flush:
      return "flush";
    case close_mode::abort:
      return "abort";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(error_handling_mode value) noexcept {
  switch (value) {
    case error_handling_mode::automatic:
      return "automatic";
    case error_handling_mode::peer:
      return "peer";
    case error_handling_mode::none:
      return "none";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(connect_wait value) noexcept {
  switch (value) {
    case connect_wait::for_peer:
      return "for_peer";
    case connect_wait::none:
      return "none";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(access value) noexcept {
  switch (value) {
    case access::read:
      return "read";
    case access::write:
      return "write";
    case access::read_write:
      return "read_write";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(transfer_method value) noexcept {
  switch (value) {
    case transfer_method::automatic:
      return "automatic";
    case transfer_method::message:
      return "message";
    case transfer_method::rma:
      return "rma";
    case transfer_method::mapped:
      return "mapped";
    case transfer_method::cma:
      return "cma";
    case transfer_method::cuda_ipc:
      return "cuda_ipc";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(memory_kind value) noexcept {
  switch (value) {
    case memory_kind::host:
      return "host";
    case memory_kind::cuda:
      return "cuda";
    case memory_kind::cuda_managed:
      return "cuda_managed";
    case memory_kind::rocm:
      return "rocm";
    case memory_kind::cuda_pinned:
      return "cuda_pinned";
    case memory_kind::other:
      return "other";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(element_type value) noexcept {
  switch (value) {
    case element_type::boolean:
      return "boolean";
    case element_type::i8:
      return "i8";
    case element_type::i16:
      return "i16";
    case element_type::i32:
      return "i32";
    case element_type::i64:
      return "i64";
    case element_type::u8:
      return "u8";
    case element_type::u16:
      return "u16";
    case element_type::u32:
      return "u32";
    case element_type::u64:
      return "u64";
    case element_type::f16:
      return "f16";
    case element_type::bf16:
      return "bf16";
    case element_type::f32:
      return "f32";
    case element_type::f64:
      return "f64";
    case element_type::c64:
      return "c64";
    case element_type::c128:
      return "c128";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(entry_type value) noexcept {
  switch (value) {
    case entry_type::memory:
      return "memory";
    case entry_type::file:
      return "file";
    case entry_type::directory:
      return "directory";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(connection_state value) noexcept {
  switch (value) {
    case connection_state::connecting:
      return "connecting";
    case connection_state::active:
      return "active";
    case connection_state::closing:
      return "closing";
    case connection_state::failed:
      return "failed";
    case connection_state::closed:
      return "closed";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(huge_pages value) noexcept {
  switch (value) {
    case huge_pages::none:
      return "none";
    case huge_pages::advise:
      return "advise";
    case huge_pages::collapse:
      return "collapse";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(missing_resource value) noexcept {
  switch (value) {
    case missing_resource::fallback:
      return "fallback";
    case missing_resource::strict:
      return "strict";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(send_memory value) noexcept {
  switch (value) {
    case send_memory::borrowed:
      return "borrowed";
    case send_memory::copied:
      return "copied";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(backpressure value) noexcept {
  switch (value) {
    case backpressure::wait:
      return "wait";
    case backpressure::fail:
      return "fail";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(send_until value) noexcept {
  switch (value) {
    case send_until::reusable:
      return "reusable";
    case send_until::matched:
      return "matched";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(progress_mode value) noexcept {
  switch (value) {
    case progress_mode::automatic:
      return "automatic";
    case progress_mode::caller:
      return "caller";
    case progress_mode::polling_thread:
      return "polling_thread";
    case progress_mode::sleeping_thread:
      return "sleeping_thread";
    case progress_mode::external:
      return "external";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(thread_mode value) noexcept {
  switch (value) {
    case thread_mode::automatic:
      return "automatic";
    case thread_mode::single:
      return "single";
    case thread_mode::multi:
      return "multi";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(progress_phase value) noexcept {
  switch (value) {
    case progress_phase::before:
      return "before";
    case progress_phase::after:
      return "after";
  }
  return "unknown";
}

template <>
std::string_view detail::enum_name(repetition value) noexcept {
  switch (value) {
    case repetition::once:
      return "once";
    case repetition::every_round:
      return "every_round";
  }
  return "unknown";
}

}  // namespace ucx
