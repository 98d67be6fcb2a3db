#include "wire/introduction.hpp"

#include <algorithm>
#include <utility>

#include "ucx/error.hpp"
#include "wire/wire.hpp"

namespace ucx::detail {
namespace {

/// The features that this version has; others of a peer's are of no use here.
constexpr std::uint32_t known_features = 0x1f;
constexpr std::uint32_t feature_borrows = std::uint32_t{1} << 31U;
constexpr std::uint32_t feature_fetches = std::uint32_t{1} << 30U;
constexpr std::uint32_t feature_lends = std::uint32_t{1} << 29U;
constexpr std::uint32_t feature_files = std::uint32_t{1} << 28U;
constexpr std::uint32_t flag_unique = 1;

template <class Bytes>
void put_counted(wire_writer& writer, const Bytes& bytes, std::size_t most) {
  const auto cut = std::as_bytes(std::span(bytes)).first(std::min(bytes.size(), most));
  writer.put(static_cast<std::uint16_t>(cut.size()));
  writer.put(cut);
}

/// Returns the next counted bytes; nothing, and `ok` false, where they are too many.
std::span<const std::byte> take_counted(wire_reader& reader, std::size_t most, bool& ok) {
  const std::size_t count = reader.take<std::uint16_t>();
  ok = ok && count <= most;
  return reader.take(count);
}

std::string text_of_bytes(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::vector<std::byte> introduction::encode() const {
  wire_writer writer = envelope::begin(letters);
  writer.put(identity);
  writer.put(static_cast<std::uint32_t>(features) | (borrows ? feature_borrows : 0) |
             (fetches ? feature_fetches : 0) | (lends ? feature_lends : 0) |
             (takes_files ? feature_files : 0));
  writer.put(unique ? flag_unique : std::uint32_t{0});
  writer.put(segment);
  writer.put(largest_eager);
  writer.put(largest_header);
  put_counted(writer, name, most_name);
  put_counted(writer, info, most_info);
  put_counted(writer, words, most_words);
  return envelope::end(std::move(writer));
}

std::optional<introduction> decode_introduction(std::span<const std::byte> wire) {
  if (wire.empty()) return introduction();
  const envelope opened(wire, introduction::letters);
  if (opened.outcome() == envelope::verdict::other_version) return introduction();
  if (opened.outcome() == envelope::verdict::damaged) return std::nullopt;
  wire_reader reader(opened.body());
  introduction read;
  bool ok = true;
  read.identity = reader.take<std::uint64_t>();
  const auto features = reader.take<std::uint32_t>();
  read.features = static_cast<feature>(features & known_features);
  read.borrows = (features & feature_borrows) != 0;
  read.fetches = (features & feature_fetches) != 0;
  read.lends = (features & feature_lends) != 0;
  read.takes_files = (features & feature_files) != 0;
  const auto flags = reader.take<std::uint32_t>();
  ok = ok && (flags & ~flag_unique) == 0;
  read.unique = (flags & flag_unique) != 0;
  read.segment = reader.take<std::uint64_t>();
  read.largest_eager = reader.take<std::uint64_t>();
  read.largest_header = reader.take<std::uint64_t>();
  // Texts of a peer's are shown to people, in error texts and logs.
  read.name = shown(text_of_bytes(take_counted(reader, introduction::most_name, ok)),
                    introduction::most_name);
  const auto info = take_counted(reader, introduction::most_info, ok);
  read.info.assign(info.begin(), info.end());
  read.words = shown(text_of_bytes(take_counted(reader, introduction::most_words, ok)),
                     introduction::most_words);
  if (!ok || !reader.finished()) return std::nullopt;
  return read;
}

greeting read_greeting(std::span<const std::byte> payload) noexcept {
  greeting read;
  while (!payload.empty()) {
    if (payload.size() < envelope::overhead) return {};
    wire_reader head(payload);
    const auto letters = head.take(4);
    head.take(4);  // version, reserved
    const std::size_t length = head.take<std::uint32_t>();
    if (length < envelope::overhead || length > payload.size()) return {};
    const auto is = [&](std::string_view expected) {
      const auto bytes = std::as_bytes(std::span(expected));
      return std::equal(letters.begin(), letters.end(), bytes.begin(), bytes.end());
    };
    if (is(worker_address_letters) && read.address.empty()) {
      read.address = payload.first(length);
    } else if (is(introduction::letters) && read.introduction.empty()) {
      read.introduction = payload.first(length);
    } else if (is(process_identity::letters) && read.process.empty()) {
      read.process = payload.first(length);
    } else if (is(host_letters) && read.host.empty()) {
      read.host = payload.first(length);
    }
    payload = payload.subspan(length);
  }
  read.intact = true;
  return read;
}

std::error_code complaint_about(const connection_terms& terms, feature features) noexcept {
  if (terms.info.size() > introduction::most_info) return errc::invalid_argument;
  const bool any =
      !terms.info.empty() || terms.unique || terms.require_rdma || !terms.transports.empty();
  return any && !includes(features, feature::am) ? make_error_code(errc::feature_disabled)
                                                 : std::error_code();
}

const char* words_about_terms(std::error_code complaint) noexcept {
  return complaint == errc::feature_disabled ? "terms need a context with feature::am"
                                             : "what it tells peers is too long";
}

std::string shown(std::string_view text, std::size_t most) {
  std::string made(text.substr(0, most));
  const auto is_control = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  };
  std::replace_if(made.begin(), made.end(), is_control, '?');
  return made;
}

}  // namespace ucx::detail
