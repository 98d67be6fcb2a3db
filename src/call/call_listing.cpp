#include "call/call_listing.hpp"

#include <charconv>
#include <string>
#include <utility>

#include "call/call_name.hpp"
#include "ucx/call_listing.hpp"
#include "ucx/error.hpp"

namespace ucx {
namespace detail {
namespace {

/// Returns the version that a name has.
std::uint32_t version_of(std::string_view name) noexcept {
  const std::string_view bare = without_version(name);
  std::uint32_t version = 1;
  if (bare.size() < name.size()) {
    const char* const end = name.data() + name.size();
    std::from_chars(name.data() + bare.size() + 1, end, version);
  }
  return version;
}

/// Reads one function, unless the reader fails. `last`: the name before it. One whose signature has
/// words of later versions is left out: this side can not call it.
void read_function(call_reader& from, std::string_view& last, std::vector<call_description>& to) {
  expect_list(from, 3);
  const std::string_view name = from.text();
  const std::string_view signature = from.text();
  const std::string_view documentation = from.text();
  if (!from.ok()) return;
  if (name <= last) return from.fail("the functions are not in order");
  last = name;
  if (!complaint_about_call_name(name).empty()) return from.fail("a name is that of no function");
  if (documentation.size() > longest_documentation) return from.fail("a documentation is too long");
  std::error_code wrong;
  call_function called(name, signature, wrong);
  if (wrong == errc::not_supported) return;
  if (wrong) return from.fail("a signature is none that this side knows");
  to.push_back({std::move(called), version_of(name), std::string(documentation)});
}

}  // namespace

bool listing_part::add(std::string_view name, std::string_view signature,
                       std::string_view documentation) {
  constexpr std::size_t lengths = 16;  // what stands before the texts
  const std::size_t more = name.size() + signature.size() + documentation.size() + lengths;
  if (!functions_.empty() && bytes_ + more > most_bytes) return false;
  functions_.push_back({name, signature, documentation});
  bytes_ += more;
  return true;
}

void listing_part::write(call_writer& to, bool is_whole) const {
  to.list(2).list(functions_.size());
  for (const texts& each : functions_) {
    to.list(3).text(each.name).text(each.signature).text(each.documentation);
  }
  to.boolean(is_whole);
}

void call_type<call_listing>::describe(std::string& text) {
  text += listing_types.substr(listing_types.find('>') + 1);
}

void call_type<call_listing>::write(call_writer& to, const call_listing& value) {
  to.list(2).list(value.functions.size());
  for (const call_description& each : value.functions) {
    to.list(3).text(each.called.name()).text(each.called.signature().text());
    to.text(each.documentation);
  }
  to.boolean(value.is_whole);
}

call_listing call_type<call_listing>::read(call_reader& from) {
  call_listing made;
  expect_list(from, 2);
  std::size_t left = from.list();
  if (left > call_listing::max_functions) from.fail("it tells of too many functions");
  if (!from.claim(left, sizeof(call_description))) return made;
  made.functions.reserve(left);
  std::string_view last;
  for (; left > 0 && from.ok(); --left) read_function(from, last, made.functions);
  made.is_whole = from.boolean();
  if (from.ok() && !made.is_whole && made.functions.empty()) {
    from.fail("a part without functions that this side knows says that there are more");
  }
  return made;
}

}  // namespace detail
}  // namespace ucx
