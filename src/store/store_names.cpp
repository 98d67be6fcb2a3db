#include "store/store_names.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/name.hpp"
#include "base/store_path.hpp"
#include "store/store_core.hpp"
#include "store/store_file.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

using lane = store_disk::lane;

std::size_t store_names::longest_path() const noexcept {
  const std::string& prefix = store_.options().prefix;
  const std::size_t taken = prefix.empty() ? 0 : prefix.size() + 1;
  return longest_name - std::min(taken, longest_name);
}

bool store_names::is_path(std::string_view path) const noexcept {
  return path.size() <= longest_path() && complaint_about_path(path).empty();
}

void store_names::stat(const std::string& path, found answer) {
  if (!path.empty() && !is_path(path)) {
    return answer(errc::no_such_name, {});
  }
  if (!path.empty() && store_.is_open()) {
    if (const std::optional<file_facts> known = store_.directory()->stat_now(path)) {
      return answer({}, *known);
    }
  }
  store_.disk().ask<file_facts>(
      lane::quick, [path, directory = store_.directory()] { return directory->stat(path); },
      std::move(answer));
}

void store_names::list_files(const std::string& after, std::size_t most, listed answer) {
  store_.disk().ask<store_listing::page>(
      lane::listing,
      [after, most, longest = longest_path(), directory = store_.directory()] {
        return directory->listing().list_files(after, most, longest);
      },
      std::move(answer));
}

void store_names::list_directory(const std::string& directory, const std::string& after,
                                 std::size_t most, listed answer) {
  if (!directory.empty() && !is_path(directory)) {
    return answer(errc::no_such_name, {});
  }
  store_.disk().ask<store_listing::page>(
      lane::listing,
      [directory, after, most, longest = longest_path(), top = store_.directory()] {
        return top->listing().list_directory(directory, after, most, longest);
      },
      std::move(answer));
}

void store_names::remove(const std::string& path, done answer) {
  if (const std::error_code refused = store_.admission().check_change(path)) {
    return answer(refused);
  }
  store_.disk().ask<file_facts>(
      lane::quick,
      [path, directory = store_.directory(), quota = store_.quota()] {
        result<file_facts> gone = directory->remove(path);
        if (gone) quota->refund(gone->size);
        return gone;
      },
      [answer](std::error_code ec, const file_facts&) { answer(ec); });
}

void store_names::make_directory(const std::string& path, done answer) {
  if (const std::error_code refused = store_.admission().check_change(path)) {
    return answer(refused);
  }
  store_.disk().ask<file_facts>(
      lane::quick,
      [path, directory = store_.directory()] { return directory->make_directory(path); },
      [answer](std::error_code ec, const file_facts&) { answer(ec); });
}

void store_names::rename(const std::string& from, const std::string& to, bool exclusive,
                         bool files_only, done answer) {
  const store_admission& admission = store_.admission();
  std::error_code refused = admission.check_change(from);
  if (!refused) refused = admission.check_change(to);
  if (!refused && (admission.is_written_below(from) || admission.is_written_below(to))) {
    refused = errc::busy;
  }
  if (refused) return answer(refused);
  store_.disk().ask<file_facts>(
      lane::quick,
      [from, to, exclusive, files_only, directory = store_.directory(), quota = store_.quota()] {
        result<file_facts> replaced = directory->rename(from, to, exclusive, files_only);
        if (replaced) quota->refund(replaced->size);
        return replaced;
      },
      [answer](std::error_code ec, const file_facts&) { answer(ec); });
}

void store_names::resize(const std::string& path, std::uint64_t size, done answer) {
  std::error_code refused = store_.admission().check_change(path);
  if (!refused && size > store_.admission().largest_file()) refused = errc::no_space;
  if (refused) return answer(refused);
  store_.disk().ask<file_facts>(
      lane::quick,
      [path, size, directory = store_.directory(), quota = store_.quota(),
       closing = store_.disk().queue(lane::quick)]() -> result<file_facts> {
        result<opened_file> opened = directory->open_file(path, true);
        if (!opened) return opened.why();
        const file_facts& was = opened->facts;
        const std::uint64_t growth = size - std::min(size, was.size);
        if (!quota->charge(growth)) return failure{errc::no_space};
        store_file file(std::move(opened->descriptor), closing);
        const std::error_code ec = file.resize(size);
        const std::uint64_t counted = was.size + growth;
        quota->refund(counted - std::min(counted, file.size_now().value_or(counted)));
        if (ec) return failure{ec};
        return was;
      },
      [answer](std::error_code ec, const file_facts&) { answer(ec); });
}

}  // namespace ucx::detail
