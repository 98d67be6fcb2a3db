#include "ucx/call_table.hpp"

#include <exception>
#include <map>
#include <new>
#include <optional>

#include "base/result.hpp"
#include "call/call_message.hpp"
#include "call/call_name.hpp"

namespace ucx {
namespace {

using detail::call_failure;
using detail::call_outcome;
using detail::call_request;
using detail::failure;
using detail::result;

}  // namespace

struct call_table::functions {
  struct function {
    call_signature signature;
    handler run;
  };

  std::map<std::string, function, std::less<>> by_name;

  result<void> add(std::string_view name, call_signature&& signature, handler&& run);
  const function* find(const call_request& asked, std::optional<call_failure>& refused) const;
  std::string known_versions(std::string_view name) const;
};

namespace {

/// Tells what a function threw.
call_failure failure_of_exception() {
  call_failure made{.outcome = call_outcome::handler_failed};
  try {
    throw;
  } catch (const std::system_error& thrown) {
    made.code = thrown.code();
    made.text = thrown.what();
  } catch (const std::bad_alloc&) {
    made.code = errc::no_memory;
    made.text = "out of memory";
  } catch (const std::exception& thrown) {
    made.text = thrown.what();
  } catch (...) {
    made.text = "it threw something that is no std::exception";
  }
  return made;
}

/// Runs a function. Returns why there is no result in `value`.
std::optional<call_failure> run_function(const call_table::handler& function, call_context& context,
                                         std::span<const std::byte> bytes, call_writer& value) {
  call_reader arguments(bytes);
  std::optional<call_failure> failed;
  try {
    function(context, arguments, value);
    std::error_code ec;
    arguments.finish(ec);
  } catch (...) {
    failed = failure_of_exception();
  }
  if (!arguments.ok()) {
    return call_failure{.outcome = call_outcome::bad_arguments,
                        .text = "its arguments are not those of its signature: " + arguments.why()};
  }
  if (failed) return failed;
  try {
    value.written();
  } catch (const error& wrong) {
    const bool is_large = wrong.code() == errc::no_space;
    return call_failure{
        .outcome = is_large ? call_outcome::result_too_large : call_outcome::handler_failed,
        .text = std::string("its result can not be sent: ") + wrong.what()};
  }
  if (value.count() == 1) return std::nullopt;
  return call_failure{.outcome = call_outcome::handler_failed,
                      .text = "it wrote " + std::to_string(value.count()) + " results"};
}

}  // namespace

result<void> call_table::functions::add(std::string_view name, call_signature&& signature,
                                        handler&& run) {
  const auto because = [&](errc code, std::string_view why) {
    return failure{code, "adding the function \"" + std::string(name) + "\": " + std::string(why)};
  };
  const std::string_view wrong = detail::complaint_about_call_name(name);
  if (!wrong.empty()) return because(errc::bad_name, wrong);
  if (!run) return because(errc::invalid_argument, "there is no function");
  const auto made =
      by_name.try_emplace(std::string(name), function{std::move(signature), std::move(run)});
  if (!made.second) return because(errc::already_exists, "the name is taken");
  return {};
}

/// Returns the names that differ by their version.
std::string call_table::functions::known_versions(std::string_view name) const {
  const std::string_view bare = detail::without_version(name);
  std::string names;
  for (auto at = by_name.lower_bound(bare); at != by_name.end() && at->first.starts_with(bare);
       ++at) {
    // Cut, where there are many: the text of a failure is short.
    if (detail::without_version(at->first) != bare) continue;
    if (names.size() > detail::longest_failure_text) break;
    names += names.empty() ? "; there is " : ", ";
    names += at->first;
  }
  return names;
}

const call_table::functions::function* call_table::functions::find(
    const call_request& asked, std::optional<call_failure>& refused) const {
  if (!detail::complaint_about_call_name(asked.name).empty()) {
    refused = call_failure{.outcome = call_outcome::unknown_function,
                           .text = "what it names is no function"};
    return nullptr;
  }
  const auto found = by_name.find(asked.name);
  if (found == by_name.end()) {
    refused =
        call_failure{.outcome = call_outcome::unknown_function,
                     .text = "there is no function of this name" + known_versions(asked.name)};
    return nullptr;
  }
  if (found->second.signature.hash() != asked.hash) {
    refused = call_failure{.outcome = call_outcome::signature_differs,
                           .text = "the signatures differ",
                           .signature = found->second.signature.text()};
    return nullptr;
  }
  return &found->second;
}

call_table::call_table() : functions_(std::make_unique<functions>()) {}
call_table::call_table(call_table&& other) noexcept = default;
call_table& call_table::operator=(call_table&& other) noexcept = default;
call_table::~call_table() = default;

void call_table::add_handler(std::string_view name, std::string_view signature, handler&& function,
                             std::error_code& ec) {
  call_signature types(signature, ec);
  if (ec) return;
  functions_->add(name, std::move(types), std::move(function)).or_end(ec);
}

std::vector<std::byte> call_table::dispatch(std::span<const std::byte> call,
                                            call_context& context) const {
  const auto asked = detail::decode_request(call);
  if (!asked) return detail::encode_failure({.text = "it is no call: " + asked.why().text});
  std::optional<call_failure> refused;
  const functions::function* found = functions_->find(*asked, refused);
  call_writer value;
  if (found != nullptr) refused = run_function(found->run, context, asked->arguments, value);
  if (refused) return detail::encode_failure(*refused);
  return detail::encode_result(value.written());
}

}  // namespace ucx
