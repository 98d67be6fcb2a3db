#include "entries.hpp"

#include <cstdint>
#include <string_view>

namespace ucxio_python {
namespace {

namespace nb = nanobind;

nb::str text(std::string_view of) { return nb::str(of.data(), of.size()); }

/// Returns nanoseconds since 1970; None where the time is not known.
nb::object time_of(const ucx::entry& of) {
  if (!of.modified) return nb::none();
  // An integer of Python's: 64 bits of nanoseconds end in 2262.
  return nb::int_(of.modified->seconds) * nb::int_(1'000'000'000) +
         nb::int_(of.modified->nanoseconds);
}

}  // namespace

nb::tuple fields_of(const ucx::entry& of) {
  return nb::make_tuple(text(of.name), text(to_string(of.type)), of.size,
                        text(to_string(of.granted)), text(to_string(of.kind)), of.generation,
                        time_of(of), of.device < 0 ? nb::none() : nb::object(nb::int_(of.device)));
}

nb::list fields_of(const std::vector<ucx::entry>& all) {
  nb::list found;
  for (const ucx::entry& each : all) found.append(fields_of(each));
  return found;
}

}  // namespace ucxio_python
