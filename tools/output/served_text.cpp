#include "output/served_text.hpp"

#include <fmt/format.h>

#include <iterator>

#include "output/printable.hpp"

namespace ucx::tool {
namespace {

bool is_writable(const publication& store) { return includes(store.granted(), access::write); }

std::string lines_to_paste(const served& all) {
  std::string text;
  const auto add = [&text](const std::string& line) {
    text += "ucxio: elsewhere: ucxio " + printable(line) + '\n';
  };
  if (!all.files.empty()) {
    add(fmt::format("cp {} .", shell_word(all.files.front().url())));
  }
  if (!all.stores.empty()) {
    add(fmt::format("cp -r {} .", shell_word(all.stores.front().url())));
  }
  for (const publication& each : all.stores) {
    if (!is_writable(each)) continue;
    const std::string url = each.url();
    add(fmt::format("cp -r PATH {}", shell_word(url.ends_with('/') ? url : url + '/')));
    break;
  }
  if (all.has_pipes) {
    const std::string pipe = shell_word(to_string(all.server.with_name("pipe")));
    add("pipe receive " + pipe);
    add("pipe send " + pipe);
  }
  return text;
}

}  // namespace

std::string served_text(const served& all) {
  std::string text;
  const auto out = std::back_inserter(text);
  for (const publication& each : all.files) {
    fmt::format_to(out, "ucxio: serving {} ({} bytes) as {}\n", printable(each.name()), each.size(),
                   each.url());
  }
  for (const publication& each : all.stores) {
    fmt::format_to(out, "ucxio: serving a {}directory as {}\n",
                   is_writable(each) ? "writable " : "", each.url());
  }
  if (all.has_pipes) text += "ucxio: serving pipes of any name\n";
  if (text.empty()) text = "ucxio: serving, but nothing is published\n";
  return text + lines_to_paste(all);
}

}  // namespace ucx::tool
