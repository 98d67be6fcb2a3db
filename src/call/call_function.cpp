#include "ucx/call_function.hpp"

#include <utility>

#include "base/result.hpp"
#include "call/call_listing.hpp"
#include "call/call_memory.hpp"
#include "call/call_message.hpp"
#include "call/call_name.hpp"

namespace ucx {
namespace {

detail::result<call_reader> result_of_answer(const call_function& called,
                                             std::span<const std::byte> wire) {
  const auto split = detail::split_message(wire);
  auto answer = split ? detail::decode_answer(*split)
                      : detail::result<detail::call_answer>(detail::failure(split.why()));
  if (!answer) {
    return detail::failure{answer.why().code,
                           "reading the answer of " + called.name() + ": " + answer.why().text};
  }
  if (answer->part_count > 0) {
    return detail::failure{errc::not_supported, "reading the answer of " + called.name() +
                                                    ": memory comes over a connection alone"};
  }
  if (answer->failure.outcome == detail::call_outcome::done) return call_reader(answer->value);
  return detail::failure_at_caller(answer->failure, called.name(), called.signature().text());
}

}  // namespace

call_function::call_function(std::string_view name, std::string_view signature, std::error_code& ec)
    : name_(name), signature_(signature, ec) {
  if (ec) {
    name_.clear();
    return;
  }
  const bool is_listing = name == detail::listing_name;
  const std::string_view wrong =
      is_listing ? std::string_view() : detail::complaint_about_call_name(name);
  const auto outcome = wrong.empty() ? std::error_code() : make_error_code(errc::bad_name);
  detail::end_with(outcome, ec,
                   [&] { return "naming the function \"" + name_ + "\": " + std::string(wrong); });
  if (outcome) name_.clear();
}

std::vector<std::byte> call_function::encode(const call_writer& arguments,
                                             std::error_code& ec) const {
  if (name_.empty()) {
    detail::end_with(make_error_code(errc::bad_name), ec,
                     [] { return std::string("calling a function without a name"); });
    return {};
  }
  std::error_code wrong;
  const auto values = arguments.written(&ec == &throws ? ec : wrong);
  if (&ec != &throws) ec = wrong;
  if (wrong) return {};
  if (!detail::call_memory_access::parts(arguments).empty()) {
    detail::end_with(make_error_code(errc::invalid_argument), ec, [this] {
      return "calling " + name_ + ": memory goes over a connection alone";
    });
    return {};
  }
  return detail::encode_request({.hash = signature_.hash(), .name = name_, .arguments = values})
      .joined();
}

call_reader call_function::decode(std::span<const std::byte> answer, std::error_code& ec) const {
  auto found = result_of_answer(*this, answer);
  call_reader none({});
  if (!found) none.fail("there is no result");
  return std::move(found).or_end(ec, std::move(none));
}

}  // namespace ucx
