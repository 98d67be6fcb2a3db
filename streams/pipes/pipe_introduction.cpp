#include "pipes/pipe_introduction.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "pipes/pipe_frame.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/url.hpp"

namespace ucx::detail {
namespace {

constexpr std::array question_magic{std::byte{'U'}, std::byte{'X'}, std::byte{'P'}, std::byte{'Q'}};
constexpr std::array answer_magic{std::byte{'U'}, std::byte{'X'}, std::byte{'P'}, std::byte{'A'}};
constexpr std::size_t longest_address = 128;  // of IPv6 with a zone and a port, or a Unix socket

/// Magic, version and a reserved field begin both.
constexpr std::size_t head = 8;

void begin(std::vector<std::byte>& made, std::span<const std::byte> magic, std::uint16_t version) {
  std::copy(magic.begin(), magic.end(), made.begin());
  put_pipe_number(std::span(made).subspan(4, 2), version);
}

/// Returns the version of a message that begins with `magic`; nothing where it does not, or the
/// version is not known.
std::optional<std::uint16_t> version_of(std::span<const std::byte> said,
                                        std::span<const std::byte> magic) noexcept {
  if (said.size() < head || !std::equal(magic.begin(), magic.end(), said.begin())) return {};
  const auto version = static_cast<std::uint16_t>(pipe_number_in(said.subspan(4, 2)));
  const bool is_known = version >= oldest_meeting_version && version <= keyed_meeting_version;
  if (!is_known || pipe_number_in(said.subspan(6, 2)) != 0) return {};
  return version;
}

void append(std::vector<std::byte>& made, std::span<const std::byte> bytes) {
  const std::size_t at = made.size();
  made.resize(at + 2);
  put_pipe_number(std::span(made).subspan(at, 2), bytes.size());
  made.insert(made.end(), bytes.begin(), bytes.end());
}

/// Appends where to connect to.
void append_addresses(std::vector<std::byte>& made, std::uint16_t version,
                      const std::string& address, const worker_address& worker) {
  append(made, std::as_bytes(std::span(address)));
  if (version == oldest_meeting_version) return;
  append(made, worker.empty() ? std::vector<std::byte>() : worker.encode());
}

/// Takes bytes off the beginning of `rest`, and their length before them.
std::optional<std::span<const std::byte>> take(std::span<const std::byte>& rest,
                                               std::size_t longest) {
  if (rest.size() < 2) return {};
  const auto length = static_cast<std::size_t>(pipe_number_in(rest.first(2)));
  if (length > longest || length > rest.size() - 2) return {};
  const std::span<const std::byte> bytes = rest.subspan(2, length);
  rest = rest.subspan(2 + length);
  return bytes;
}

std::optional<std::string> take_text(std::span<const std::byte>& rest, std::size_t longest) {
  const auto bytes = take(rest, longest);
  if (!bytes) return {};
  std::string text(bytes->size(), '\0');
  std::transform(bytes->begin(), bytes->end(), text.begin(),
                 [](std::byte each) { return static_cast<char>(each); });
  return text;
}

/// Takes what `append_addresses` wrote, and nothing behind it: one address at most.
template <class Said>
bool take_addresses(std::span<const std::byte> rest, Said& heard) {
  auto address = take_text(rest, longest_address);
  if (!address) return false;
  heard.address = std::move(*address);
  if (heard.version > oldest_meeting_version) {
    const auto worker = take(rest, longest_pipe_worker);
    if (!worker) return false;
    std::error_code damaged;
    if (!worker->empty()) heard.worker = worker_address::decode(*worker, damaged);
    // A worker's address that leads nowhere is none.
    if (damaged || worker->empty() != heard.worker.empty()) return false;
  }
  return rest.empty() && (heard.address.empty() || heard.worker.empty());
}

}  // namespace

std::vector<std::byte> encode(const pipe_question& said) {
  std::vector<std::byte> made(head + 8);
  begin(made, question_magic, said.version);
  made[head] = static_cast<std::byte>(said.role);
  put_pipe_number(std::span(made).subspan(head + 4, 4), said.wanted);
  append(made, std::as_bytes(std::span(said.name)));
  append_addresses(made, said.version, said.address, said.worker);
  return made;
}

std::vector<std::byte> encode(const pipe_answer& said) {
  std::vector<std::byte> made(head + 8 + said.token.size());
  begin(made, answer_magic, said.version);
  put_pipe_number(std::span(made).subspan(head, 4), said.status);
  std::copy(said.token.begin(), said.token.end(), made.begin() + head + 8);
  append_addresses(made, said.version, said.address, said.worker);
  return made;
}

std::optional<pipe_question> decode_pipe_question(std::span<const std::byte> said) {
  const auto version = version_of(said, question_magic);
  if (!version || said.size() < head + 8) return {};
  const auto role = std::to_integer<std::uint8_t>(said[head]);
  if (role < 1 || role > 3 || pipe_number_in(said.subspan(head + 1, 3)) != 0) return {};
  pipe_question heard;
  heard.version = *version;
  heard.role = static_cast<pipe_role>(role);
  heard.wanted = static_cast<std::uint32_t>(pipe_number_in(said.subspan(head + 4, 4)));
  if (heard.wanted == 0 || heard.wanted > pipe_options::max_peers) return {};
  std::span<const std::byte> rest = said.subspan(head + 8);
  auto name = take_text(rest, url::max_name_size);
  if (!name || name->empty()) return {};
  heard.name = std::move(*name);
  if (!take_addresses(rest, heard)) return {};
  const bool has_address = !heard.address.empty() || !heard.worker.empty();
  if (has_address == (heard.role == pipe_role::writer)) return {};
  return heard;
}

std::optional<pipe_answer> decode_pipe_answer(std::span<const std::byte> said) {
  pipe_answer heard;
  const std::size_t fixed = head + 8 + heard.token.size();
  const auto version = version_of(said, answer_magic);
  if (!version || said.size() < fixed) return {};
  heard.version = *version;
  heard.status = static_cast<std::uint32_t>(pipe_number_in(said.subspan(head, 4)));
  if (pipe_number_in(said.subspan(head + 4, 4)) != 0) return {};
  const std::span<const std::byte> token = said.subspan(head + 8, heard.token.size());
  std::copy(token.begin(), token.end(), heard.token.begin());
  if (!take_addresses(said.subspan(fixed), heard)) return {};
  return heard;
}

}  // namespace ucx::detail
