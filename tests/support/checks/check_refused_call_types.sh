#!/usr/bin/env bash
# Fails where a type that no call carries compiles, or where the compiler does not say why in the library's words.
#   check_refused_call_types.sh COMPILER INCLUDE_DIR
set -euo pipefail
compiler=$1 include=$2
failures=0

# Compiles statements with the headers of calls, and prints what the compiler says.
compile() { # STATEMENTS
  {
    echo '#include <ucx/rpc.hpp>'
    echo 'struct unknown {}; struct empty {}; struct window { int x; };'
    echo 'template <> struct ucx::call_fields<empty> { static constexpr std::string_view name = "empty";'
    echo '  static constexpr std::tuple<> fields{}; };'
    echo 'template <> struct ucx::call_fields< ::window> { static constexpr std::string_view name = "window";'
    echo '  static constexpr std::tuple fields{ucx::call_field("x", &::window::x)}; };'
    echo "void test(ucx::call_table& calls) { $1 }"
  } | "$compiler" -std=c++20 -fsyntax-only -I "$include" -x c++ - 2>&1
}
refused() { # STATEMENTS WORDS
  local said
  if said=$(compile "$1"); then
    echo "compiles: $1" >&2
  elif ! grep -qF -- "$2" <<<"$said"; then
    echo "is refused, but not by \"$2\": $1" >&2
    head -5 <<<"$said" >&2
  else
    return 0
  fi
  failures=$((failures + 1))
}

# What is refused below differs from this by one type.
compile 'calls.add("f", [](int, std::string_view) { return std::string(); }); ucx::remote_procedure<void(int)> g("g");'

refused 'calls.add("f", [](const char*) {});' 'a pointer means nothing to a peer'
refused 'calls.add("f", [](std::vector<int*>) {});' 'a pointer means nothing to a peer'
refused 'ucx::remote_procedure<int*()> f("f");' 'a pointer means nothing to a peer'
refused 'calls.add("f", [](long double) {});' 'long double differs between machines'
refused 'calls.add("f", [](char) {});' 'char differs between machines'
refused 'enum loose { a, b }; calls.add("f", [](loose) {});' 'an enumeration needs a fixed underlying type'
refused 'calls.add("f", [](unknown) {});' 'specialise ucx::call_fields'
refused 'calls.add("f", [](empty) {});' 'a record without fields has no wire type'
refused 'calls.add("f", [] { return std::string_view("a"); });' 'a result owns its memory'
refused 'calls.add("f", [] { return std::vector<std::string_view>(); });' 'a result owns its memory'
refused 'ucx::remote_procedure<std::string_view()> f("f");' 'a result owns its memory'
refused 'calls.add("f", [](int&) {});' 'an argument by reference is not given back'
refused 'calls.add("f", [](auto) {});' 'whose parameters have named types'
refused 'calls.add("f", [](std::optional<std::optional<int>>) {});' 'an optional of an optional'
refused 'calls.add("f", [](std::tuple<>) {});' 'a tuple without elements has no wire type'
refused 'calls.add("f", [](std::array<int, 0>) {});' 'an array without elements has no wire type'
refused 'calls.add("f", [](std::map<double, int>) {});' 'the key of a map is'
refused 'struct p { int x; }; constexpr ucx::call_field f("1x", &p::x);' 'names_of_records_and_fields_have_letters'
refused 'calls.add("f", [](window) {});' 'a_record_is_not_named_as_a_wire_type'

refused 'calls.add("f", [](const std::string&) -> ucx::call_task<void> { co_return; });' 'a coroutine runs when its call has returned'
refused 'calls.add("f", [](std::string_view) -> ucx::call_task<void> { co_return; });' 'a coroutine runs when its call has returned'
compile 'calls.add("f", [](std::string, ucx::window<ucx::access::read>) -> ucx::call_task<void> { co_return; });'
refused 'using w = ucx::window<ucx::access::read>; ucx::remote_procedure<w()> f("f");' 'a result owns its memory'

dynamic='(ucx::call_context&, ucx::call_reader&, ucx::call_writer&)'
compile "calls.add_dynamic(\"f\", \"()->nil\", []$dynamic {});"
refused "calls.add_dynamic(\"f\", \"()->nil\", []$dynamic { return unknown(); });" 'a dynamic function returns void'

refused 'ucx::call_function("f", "()->nil").decode(std::vector<std::byte>());' 'deleted'
refused 'ucx::call_writer().written();' 'deleted'

memory='ucx::call_channel peer; ucx::buffer one; ucx::call_stub<void(ucx::buffer)> stub(peer, "f");'
many="$memory std::vector<ucx::buffer> all; ucx::call_stub<void(std::vector<ucx::buffer>)> stubs(peer, \"f\");"
ends='the buffers of this argument end before the call'
compile "$memory peer.start_call<void>(\"f\", std::move(one)); stub.start(ucx::buffer(1)); stub.start(one);"
compile "$many peer.start_call<void>(\"f\", all); stubs.start(all); peer.call<void>(\"f\", std::move(all));"
refused "$many peer.start_call<void>(\"f\", std::move(all));" "$ends"
refused "$many stubs.start(std::move(all));" "$ends"
refused "$memory peer.start_call<void>(\"f\", std::move(std::as_const(one)));" "$ends"

refused 'calls.add("f", [](std::array<double, 40000>) {});' 'an array takes more than 256 KiB'
refused 'calls.add("f", [](std::vector<std::array<double, 40000>>) {});' 'takes more than 256 KiB'
two='std::array<double, 20000>'
compile "calls.add(\"f\", []($two) {}); ucx::remote_procedure<$two()> g(\"g\");"
refused "calls.add(\"f\", []($two, $two) {});" 'the arguments and the result take more than 256 KiB'
refused "ucx::remote_procedure<$two($two)> f(\"f\");" 'the arguments and the result take more than 256 KiB'
refused "calls.add(\"f\", [](std::vector<std::pair<$two, $two>>) {});" 'an element of a vector takes more than 256 KiB'
refused "calls.add(\"f\", [](std::map<int, std::pair<$two, $two>>) {});" 'a value of a map takes more than 256 KiB'

lists=int
for ((i = 0; i < 17; ++i)); do lists="std::vector<$lists>"; done
refused "calls.add(\"f\", []($lists) {});" 'more than 16 lists, maps and records'
refused "ucx::remote_procedure<$lists()> f(\"f\");" 'more than 16 lists, maps and records'

[ $failures = 0 ]
