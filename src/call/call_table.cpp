#include "ucx/call_table.hpp"

#include <optional>

#include "base/result.hpp"
#include "call/call_directory.hpp"
#include "call/call_message.hpp"
#include "call/call_shape.hpp"

namespace ucx {

call_table::call_table() : functions_(std::make_shared<detail::call_directory>()) {}
call_table::call_table(call_table&& other) noexcept = default;
call_table& call_table::operator=(call_table&& other) noexcept = default;
call_table::~call_table() = default;

void call_table::add_handler(std::string_view name, std::string_view signature, handler&& function,
                             bool checks, const call_function_options& options,
                             std::error_code& ec) {
  call_signature types(signature, ec);
  if (ec) return;
  std::optional<detail::call_shape> shape;
  if (checks) shape = detail::call_shape::parse(types.text()).or_throw();
  functions_->add(name, std::move(types), std::move(shape), std::move(function), options)
      .or_end(ec);
}

void call_table::refuse(predicate refused) { functions_->refuse(std::move(refused)); }

void call_table::observe(observer told) { functions_->observe(std::move(told)); }

call_statistics call_table::statistics() const noexcept { return functions_->statistics(); }

std::vector<std::byte> call_table::dispatch(std::span<const std::byte> call,
                                            call_context& context) const {
  const auto refuse = [&](std::uint64_t number, const detail::failure& why) {
    return functions_->refuse(number, detail::failure_of_request(why), context).joined();
  };
  const auto split = detail::split_message(call);
  if (!split) return refuse(0, split.why());
  const auto asked = detail::decode_request(*split);
  if (!asked) {
    const auto begun = detail::decode_beginning(split->head);
    return refuse(begun ? begun->number : 0, asked.why());
  }
  if (asked->kind == detail::call_kind::cancel) return {};
  context.number = asked->number;
  if (asked->part_count > 0) {
    return refuse(asked->number, {errc::not_supported, "memory comes over a connection alone"});
  }
  auto answer = functions_->answer(*asked, context);
  if (answer && !answer->parts.empty()) {
    answer = functions_->refuse(asked->number,
                                {.outcome = detail::call_outcome::handler_failed,
                                 .text = "its memory goes over a connection alone",
                                 .code = make_error_code(errc::not_supported)},
                                context, asked->name);
  }
  return asked->is_one_way || !answer ? std::vector<std::byte>() : answer->joined();
}

}  // namespace ucx
