#include "ucx/call_function.hpp"

#include <utility>

#include "base/result.hpp"
#include "call/call_message.hpp"
#include "call/call_name.hpp"

namespace ucx {
namespace {

using detail::call_outcome;
using detail::failure;
using detail::result;

std::error_code code_of_failure(const detail::call_failure& why) {
  switch (why.outcome) {
    case call_outcome::unknown_function:
      return errc::no_such_name;
    case call_outcome::signature_differs:
      return errc::version_mismatch;
    case call_outcome::result_too_large:
      return errc::no_space;
    case call_outcome::handler_failed:
      return why.code ? why.code : errc::unexpected;
    case call_outcome::done:
    case call_outcome::bad_call:
    case call_outcome::bad_arguments:
      break;
  }
  return errc::protocol_error;
}

result<call_reader> result_of_answer(const call_function& called, std::span<const std::byte> wire) {
  auto answer = detail::decode_answer(wire);
  if (!answer) {
    return failure{answer.why().code,
                   "reading the answer of " + called.name() + ": " + answer.why().text};
  }
  const detail::call_failure& why = answer->failure;
  if (why.outcome == call_outcome::done) return call_reader(answer->value);
  std::string text = "calling " + called.name() + ": " + why.text;
  if (why.outcome == call_outcome::signature_differs) {
    text += ": the caller knows " + called.signature().text() + ", and the function is " +
            why.signature;
  }
  return failure{code_of_failure(why), std::move(text)};
}

}  // namespace

call_function::call_function(std::string_view name, std::string_view signature, std::error_code& ec)
    : name_(name), signature_(signature, ec) {
  if (ec) {
    name_.clear();
    return;
  }
  const std::string_view wrong = detail::complaint_about_call_name(name);
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
  return detail::encode_request({.name = name_, .hash = signature_.hash(), .arguments = values});
}

call_reader call_function::decode(std::span<const std::byte> answer, std::error_code& ec) const {
  auto found = result_of_answer(*this, answer);
  call_reader none({});
  if (!found) none.fail("there is no result");
  return std::move(found).or_end(ec, std::move(none));
}

}  // namespace ucx
