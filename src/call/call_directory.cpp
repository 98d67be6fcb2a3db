#include "call/call_directory.hpp"

#include <exception>
#include <new>
#include <random>
#include <utility>

#include "base/name.hpp"
#include "call/call_deferral.hpp"
#include "call/call_listing.hpp"
#include "call/call_memory.hpp"
#include "call/call_name.hpp"

namespace ucx::detail {
namespace {

std::uint64_t random_beginning() {
  std::random_device entropy;
  return (std::uint64_t{entropy()} << 32U) | 1U;
}

call_failure other_arguments(const call_reader& arguments) {
  return {.outcome = call_outcome::bad_arguments,
          .text = "its arguments are not those of its signature: " + arguments.why()};
}

call_failure other_signature(const call_signature& own) {
  return {.outcome = call_outcome::signature_differs,
          .text = "the signatures differ",
          .signature = own.text()};
}

call_failure refused_call() {
  return {.outcome = call_outcome::refused, .text = "the peer does not allow this call"};
}

/// Returns why a text is no documentation; nothing where it is.
std::string_view complaint_about_documentation(std::string_view text) noexcept {
  if (text.size() > longest_documentation) return "its documentation is longer than 4096 bytes";
  if (valid_utf8(text) != text.size()) return "its documentation is not UTF-8";
  return {};
}

}  // namespace

call_directory::call_directory()
    : first_number_(random_beginning()),
      listing_(listing_types),
      contents_(std::make_shared<const contents>()) {}

std::shared_ptr<const call_directory::contents> call_directory::current() const {
  const std::lock_guard guard(changing_);
  return contents_;
}

/// Those that are gone are destroyed behind the lock: they have what is the program's.
template <class Change>
void call_directory::change(Change made) {
  std::shared_ptr<const contents> before;
  const std::lock_guard guard(changing_);
  auto changed = std::make_shared<contents>(*contents_);
  made(*changed);
  before = std::exchange(contents_, std::move(changed));
}

result<void> call_directory::add(std::string_view name, call_signature signature,
                                 std::optional<call_shape> shape, call_table::handler run,
                                 const call_function_options& options) {
  const auto because = [&](errc code, std::string_view why) {
    return failure{code, "adding the function \"" + std::string(name) + "\": " + std::string(why)};
  };
  const std::string_view wrong = complaint_about_call_name(name);
  if (!wrong.empty()) return because(errc::bad_name, wrong);
  if (!run) return because(errc::invalid_argument, "there is no function");
  const std::string_view unfit = complaint_about_documentation(options.documentation);
  if (!unfit.empty()) return because(errc::invalid_argument, unfit);
  if (!options.memory.has_resource()) {
    return because(errc::invalid_argument, "there is no resource for its kind of memory");
  }
  const std::string_view arguments =
      std::string_view(signature.text()).substr(0, signature.text().find("->"));
  const bool takes_memory = arguments.find("buffer") != std::string_view::npos ||
                            arguments.find("tensor") != std::string_view::npos;
  std::string kept(name);
  const auto made = std::make_shared<function>(
      function{std::move(kept), std::move(signature), std::move(shape), 0, std::move(run),
               options.documentation, options.memory, takes_memory});
  bool is_taken = false;
  change([&](contents& all) {
    made->number = first_number_ + all.in_order.size();
    is_taken = !all.by_name.try_emplace(made->name, made).second;
    if (!is_taken) all.in_order.push_back(made);
  });
  if (is_taken) return because(errc::already_exists, "the name is taken");
  return {};
}

void call_directory::refuse(call_table::predicate refused) {
  auto made = std::make_shared<const call_table::predicate>(std::move(refused));
  change([&](contents& all) { all.refused = *made ? std::move(made) : nullptr; });
}

void call_directory::observe(call_table::observer told) {
  auto made = std::make_shared<const call_table::observer>(std::move(told));
  change([&](contents& all) { all.observer = *made ? std::move(made) : nullptr; });
}

/// Returns the names that differ by their version.
std::string call_directory::contents::known_versions(std::string_view name, call_gate* gate) const {
  const std::string_view bare = without_version(name);
  std::string names;
  for (auto at = by_name.lower_bound(bare); at != by_name.end() && at->first.starts_with(bare);
       ++at) {
    // Cut, where there are many: the text of a failure is short.
    if (without_version(at->first) != bare) continue;
    if (gate != nullptr && !gate->shows(at->first)) continue;
    if (names.size() > longest_failure_text) break;
    names += names.empty() ? "; there is " : ", ";
    names += at->first;
  }
  return names;
}

/// A hidden function is told of as one that is not there.
const call_directory::function* call_directory::contents::find(const asked_call& asked,
                                                               std::uint64_t first, call_gate* gate,
                                                               call_failure& refusal) const {
  const auto is_there = [gate](const function& found) {
    return gate == nullptr || gate->shows(found.name);
  };
  if (asked.kind == call_kind::bound) {
    const std::uint64_t place = asked.function - first;
    if (place < in_order.size()) {
      const function& found = *in_order[static_cast<std::size_t>(place)];
      if (gate != nullptr) gate->names(found.name);
      if (is_there(found)) return &found;
    }
    refusal = {.outcome = call_outcome::unknown_function,
               .text = "there is no function of this number; bind it again"};
    return nullptr;
  }
  if (!complaint_about_call_name(asked.name).empty()) {
    refusal = {.outcome = call_outcome::unknown_function, .text = "what it names is no function"};
    return nullptr;
  }
  const auto found = by_name.find(asked.name);
  if (found == by_name.end() || !is_there(*found->second)) {
    refusal = {.outcome = call_outcome::unknown_function,
               .text = "there is no function of this name" + known_versions(asked.name, gate)};
    return nullptr;
  }
  if (found->second->signature.hash() != asked.hash) {
    refusal = other_signature(found->second->signature);
    return nullptr;
  }
  return found->second.get();
}

void call_directory::contents::list(std::string_view after, call_gate* gate,
                                    call_writer& to) const {
  listing_part part;
  for (auto at = by_name.upper_bound(after); at != by_name.end(); ++at) {
    const function& each = *at->second;
    if (gate != nullptr && !gate->shows(each.name)) continue;
    if (!part.add(each.name, each.signature.text(), each.documentation)) {
      return part.write(to, false);
    }
  }
  part.write(to, true);
}

/// A predicate that throws refuses.
bool call_directory::contents::refuses(const call_context& context,
                                       std::string_view name) const noexcept {
  try {
    return refused && (*refused)(context, name);
  } catch (...) {
    return true;
  }
}

/// Tells what a function threw.
call_failure call_directory::failure_of_exception() {
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

std::optional<call_failure> call_directory::complaint_about_result(
    const call_writer& value, const std::optional<call_shape>& shape) {
  std::span<const std::byte> bytes;
  try {
    bytes = value.written();
  } catch (const error& wrong) {
    const bool is_large = wrong.code() == errc::no_space;
    return call_failure{
        .outcome = is_large ? call_outcome::result_too_large : call_outcome::handler_failed,
        .text = std::string("its result can not be sent: ") + wrong.what()};
  }
  for (const sent_part& each : call_memory_access::parts(value)) {
    if (each.owner) continue;
    return call_failure{.outcome = call_outcome::handler_failed,
                        .text = "its result has memory that is not its own"};
  }
  if (value.count() != 1) {
    return call_failure{.outcome = call_outcome::handler_failed,
                        .text = "it wrote " + std::to_string(value.count()) + " results"};
  }
  if (!shape) return std::nullopt;
  std::vector<landed_part> sent;
  for (const sent_part& each : call_memory_access::parts(value)) {
    sent.push_back({.owner = each.owner});
  }
  call_reader written = call_memory_access::reader(bytes, sent);
  shape->read_result(written);
  if (written.ok()) return std::nullopt;
  return call_failure{.outcome = call_outcome::handler_failed,
                      .text = "its result is not that of its signature: " + written.why()};
}

/// Returns why there is no result in `value`.
std::optional<call_failure> call_directory::run(const function& called, const asked_call& asked,
                                                call_context& context, call_writer& value) {
  if (called.shape) {
    call_reader checked = call_memory_access::reader(asked.arguments, asked.memory);
    called.shape->read_arguments(checked);
    std::error_code ec;
    checked.finish(ec);
    if (ec) return other_arguments(checked);
  }
  call_reader arguments = call_memory_access::reader(asked.arguments, asked.memory);
  std::optional<call_failure> failed;
  try {
    called.run(context, arguments, value);
    std::error_code ec;
    if (!called.shape) arguments.finish(ec);
  } catch (...) {
    failed = failure_of_exception();
  }
  if (!arguments.ok() && !called.shape) return other_arguments(arguments);
  if (!arguments.ok()) {
    return call_failure{.outcome = call_outcome::handler_failed,
                        .text = "it read its arguments as others: " + arguments.why()};
  }
  return failed ? failed : complaint_about_result(value, called.shape);
}

std::optional<call_failure> call_directory::list(const contents& now, const asked_call& asked,
                                                 const call_context& context, call_gate* gate,
                                                 call_writer& value) const {
  if (asked.hash != listing_.hash()) return other_signature(listing_);
  if (now.refuses(context, listing_name)) return refused_call();
  call_reader arguments(asked.arguments);
  const std::string_view after = arguments.text();
  std::error_code ec;
  arguments.finish(ec);
  if (ec) return other_arguments(arguments);
  now.list(after, gate, value);
  return std::nullopt;
}

std::optional<call_message> call_directory::answer(const asked_call& asked, call_context& context,
                                                   call_gate* gate, late_senders* later) {
  const std::shared_ptr<const contents> now = current();
  call_writer value;
  const auto result_of = [&] {
    count(call_outcome::done);
    return encode_result_of(asked.number, value);
  };
  if (asked.kind == call_kind::call && asked.name == listing_name) {
    if (const auto failed = list(*now, asked, context, gate, value)) {
      return refuse(asked.number, *failed, context, listing_name);
    }
    return result_of();
  }
  call_failure refusal;
  const function* const called = now->find(asked, first_number_, gate, refusal);
  if (called == nullptr) return refuse(asked.number, refusal, context, asked.name);
  if (now->refuses(context, called->name)) {
    return refuse(asked.number, refused_call(), context, called->name);
  }
  if (asked.kind == call_kind::bind) {
    value.unsigned_integer(called->number);
    return encode_result_of(asked.number, value);
  }
  call_deferral deferral(*this, now, *called, later);
  context.deferral.by_ = &deferral;
  const auto failed = run(*called, asked, context, value);
  context.deferral.by_ = nullptr;
  if (deferral.was_deferred()) return std::nullopt;
  if (failed) return refuse(asked.number, *failed, context, called->name);
  return result_of();
}

std::optional<call_directory::landing> call_directory::landing_of(const asked_call& asked,
                                                                  const call_context& context,
                                                                  call_gate* gate) const {
  const std::shared_ptr<const contents> now = current();
  call_failure refusal;
  const function* const called = now->find(asked, first_number_, gate, refusal);
  if (called == nullptr || now->refuses(context, called->name)) return std::nullopt;
  return landing{called->memory, called->takes_memory};
}

call_message call_directory::refuse(std::uint64_t number, const call_failure& why,
                                    const call_context& context, std::string_view name) {
  count(why.outcome);
  if (const auto told = current()->observer) {
    const call_failure_report report{.context = context,
                                     .function = name,
                                     .code = code_at_caller(why.outcome),
                                     .cause = why.code,
                                     .text = why.text};
    [&]() noexcept { (*told)(report); }();
  }
  return encode_failure(number, why);
}

void call_directory::count(call_outcome outcome) noexcept {
  const auto of = [this](call_outcome ended) -> std::atomic<std::uint64_t>& {
    switch (ended) {
      case call_outcome::done:
        return counters_.done;
      case call_outcome::handler_failed:
      case call_outcome::result_too_large:
        return counters_.failed;
      case call_outcome::refused:
      case call_outcome::busy:
      case call_outcome::no_room:
        return counters_.refused;
      case call_outcome::given_up:
        return counters_.given_up;
      default:
        return counters_.invalid;
    }
  };
  of(outcome).fetch_add(1, std::memory_order_relaxed);
}

call_statistics call_directory::statistics() const noexcept {
  return {.done = counters_.done.load(std::memory_order_relaxed),
          .failed = counters_.failed.load(std::memory_order_relaxed),
          .refused = counters_.refused.load(std::memory_order_relaxed),
          .invalid = counters_.invalid.load(std::memory_order_relaxed),
          .given_up = counters_.given_up.load(std::memory_order_relaxed)};
}

}  // namespace ucx::detail
