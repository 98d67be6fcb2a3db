#include "wire/control_message.hpp"

#include <msgpack.hpp>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "ucx/error.hpp"
#include "wire/control_fields.hpp"
#include "wire/control_writer.hpp"
#include "wire/frame.hpp"
#include "wire/wire.hpp"

namespace ucx::detail {
namespace {

// Limits of what is read; a message is no longer than what its channel carries anyway.
constexpr std::size_t most_elements = 4096;    // Of one array.
constexpr std::size_t longest_text = 2048;     // Names have 1024 bytes at most.
constexpr std::size_t longest_binary = 65536;  // No message is longer.
constexpr std::size_t deepest_nesting = 4;

constexpr auto last_type = static_cast<std::uint8_t>(control_type::lend);

/// Checks type and body of a message, and lets `read` fill the body's fields.
template <class Body, class Read>
std::optional<Body> decode(std::span<const std::byte> wire, control_type type, Read&& read) {
  const std::optional<control_header> header = decode_control(wire);
  // A refused hello is answered with a body too: it tells the versions.
  const bool bodyless = header && header->status != 0 && type != control_type::welcome;
  if (!header || header->type != type || bodyless) return std::nullopt;
  const std::span<const std::byte> packed = wire.subspan(control_header::size);
  try {
    // Texts and binaries stay where they are until they are copied into the body.
    const auto by_reference = [](msgpack::type::object_type, std::size_t, void*) { return true; };
    const msgpack::unpack_limit limits(most_elements, 0, longest_text, longest_binary, 0,
                                       deepest_nesting);
    std::size_t used = 0;
    const msgpack::object_handle unpacked =
        msgpack::unpack(reinterpret_cast<const char*>(packed.data()), packed.size(), used,
                        by_reference, nullptr, limits);
    control_fields fields(unpacked.get());
    Body body;
    read(fields, body);
    if (!fields.ok() || used != packed.size()) return std::nullopt;
    return body;
  } catch (const msgpack::unpack_error&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<std::byte> encode_control(const control_header& header) {
  return control_writer(header, 0).take();
}

std::vector<std::byte> encode_control(const control_header& header, const hello_body& body) {
  control_writer made(header, body.ticket ? 5 : 4);
  made.put(body.oldest).put(body.newest).put(std::string_view(body.library)).put(body.features);
  if (body.ticket) made.put(std::span<const std::byte>(*body.ticket));
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const welcome_body& body) {
  control_writer made(header, body.identity.empty() ? 3 : 4);
  made.put(body.version).put(std::string_view(body.library)).put(body.features);
  if (!body.identity.empty()) made.put(std::string_view(body.identity));
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const open_body& body) {
  control_writer made(header, 2);
  made.put(std::string_view(body.name)).put(static_cast<std::uint64_t>(body.wanted));
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const opened_body& body) {
  control_writer made(header, 6);
  made.put(body.described).put(std::span(body.descriptor)).put(body.limit).put(body.window);
  made.put_bool(body.held).put(body.identity);
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const stat_body& body) {
  return control_writer(header, 1).put(std::string_view(body.name)).take();
}

std::vector<std::byte> encode_control(const control_header& header, const described_body& body) {
  return control_writer(header, 1).put(body.described).take();
}

std::vector<std::byte> encode_control(const control_header& header, const list_body& body) {
  control_writer made(header, body.directory ? 2 : 1);
  made.put(std::string_view(body.after));
  if (body.directory) made.put(std::string_view(*body.directory));
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const listed_body& body) {
  control_writer made(header, body.unserved > 0 ? 3 : 2);
  made.begin_array(body.entries.size());
  for (const entry& each : body.entries) made.put(each);
  made.put_bool(body.more);
  if (body.unserved > 0) made.put(body.unserved);
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const revoke_body& body) {
  return control_writer(header, 2).put(body.region).put(std::string_view(body.name)).take();
}

std::vector<std::byte> encode_control(const control_header& header, const create_body& body) {
  control_writer made(header, 3);
  made.put(std::string_view(body.name)).put(static_cast<std::uint64_t>(body.wanted));
  made.put(static_cast<std::uint64_t>(body.mode));
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const commit_body& body) {
  return control_writer(header, 3)
      .put(body.region)
      .put_bool(body.durable)
      .put_bool(body.released)
      .take();
}

std::vector<std::byte> encode_control(const control_header& header, const release_body& body) {
  return control_writer(header, 1).put(body.region).take();
}

std::vector<std::byte> encode_control(const control_header& header, const remove_body& body) {
  return control_writer(header, 1).put(std::string_view(body.name)).take();
}

std::vector<std::byte> encode_control(const control_header& header, const rename_body& body) {
  control_writer made(header, 3);
  made.put(std::string_view(body.from)).put(std::string_view(body.to)).put_bool(body.exclusive);
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const resize_body& body) {
  return control_writer(header, 3)
      .put(std::string_view(body.name))
      .put(body.size)
      .put(body.region)
      .take();
}

std::vector<std::byte> encode_control(const control_header& header, const measure_body& body) {
  return control_writer(header, 3).put(body.region).put(body.known).put(body.wait).take();
}

std::vector<std::byte> encode_control(const control_header& header, const digest_body& body) {
  control_writer made(header, 4);
  return made.put(body.region).put(body.offset).put(body.length).put(body.chunk).take();
}

std::vector<std::byte> encode_control(const control_header& header, const digested_body& body) {
  wire_writer halves;
  for (const content_digest& each : body.digests) {
    halves.put(each.high);
    halves.put(each.low);
  }
  const std::vector<std::byte> bytes = std::move(halves.bytes());
  return control_writer(header, 1).put(std::span<const std::byte>(bytes)).take();
}

std::vector<std::byte> encode_control(const control_header& header,
                                      const make_directory_body& body) {
  return control_writer(header, 1).put(std::string_view(body.name)).take();
}

std::vector<std::byte> encode_control(const control_header& header, const put_body& body) {
  control_writer made(header, 3);
  made.put_bool(body.exclusive).put_bool(body.durable).begin_array(body.files.size());
  for (const put_body::file& each : body.files) {
    made.begin_array(2);
    made.put(std::string_view(each.name)).put(std::span<const std::byte>(each.content));
  }
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const stored_body& body) {
  control_writer made(header, 1);
  made.begin_array(body.outcomes.size());
  for (const std::error_code& each : body.outcomes) {
    made.put(static_cast<std::uint64_t>(error_status(each)));
  }
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const fetch_body& body) {
  control_writer made(header, 2);
  made.put(body.most).begin_array(body.names.size());
  for (const std::string& each : body.names) made.put(std::string_view(each));
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const fetched_body& body) {
  control_writer made(header, 1);
  made.begin_array(body.contents.size());
  for (const std::optional<std::vector<std::byte>>& each : body.contents) {
    made.begin_array(each ? 1 : 0);
    if (each) made.put(std::span<const std::byte>(*each));
  }
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const lend_body& body) {
  return control_writer(header, 1).put(std::span<const std::byte>(body.ticket)).take();
}

std::optional<std::vector<std::byte>> refuse_unknown(std::span<const std::byte> wire) {
  wire_reader bytes(wire);
  const std::span<const std::byte> letters = bytes.take(2);
  const auto version = bytes.take<std::uint8_t>();
  const auto type = bytes.take<std::uint8_t>();
  control_header answer;
  bytes.take<std::uint32_t>();
  answer.request = bytes.take<std::uint64_t>();
  if (!bytes.ok() || letters[0] != control_magic[0] || letters[1] != control_magic[1] ||
      version != control_header_version || type <= last_type) {
    return std::nullopt;
  }
  answer.type = control_type::done;
  answer.status = error_status(errc::not_supported);
  return encode_control(answer);
}

std::optional<std::vector<std::byte>> refuse_greeting(std::span<const std::byte> wire,
                                                      std::string library) {
  const std::optional<control_header> asked = decode_control(wire);
  if (!asked || asked->type != control_type::hello) return std::nullopt;
  control_header answer;
  answer.type = control_type::welcome;
  answer.status = error_status(errc::connection_refused);
  answer.request = asked->request;
  return encode_control(answer, welcome_body{.library = std::move(library)});
}

std::size_t encoded_size(const entry& described) noexcept {
  constexpr std::size_t without_name = 64;  // an array, the text's head, and five numbers
  return without_name + described.name.size();
}

std::optional<control_header> decode_control(std::span<const std::byte> wire) noexcept {
  wire_reader bytes(wire);
  const std::span<const std::byte> letters = bytes.take(2);
  const auto version = bytes.take<std::uint8_t>();
  const auto type = bytes.take<std::uint8_t>();
  control_header header;
  header.status = bytes.take<std::uint32_t>();
  header.request = bytes.take<std::uint64_t>();
  if (!bytes.ok() || letters[0] != control_magic[0] || letters[1] != control_magic[1] ||
      version != control_header_version || type < static_cast<std::uint8_t>(control_type::hello) ||
      type > last_type) {
    return std::nullopt;
  }
  header.type = static_cast<control_type>(type);
  return header;
}

std::optional<hello_body> decode_hello(std::span<const std::byte> wire) {
  return decode<hello_body>(wire, control_type::hello,
                            [](control_fields& fields, hello_body& body) {
                              body.oldest = static_cast<std::uint32_t>(fields.number(0xffffffff));
                              body.newest = static_cast<std::uint32_t>(fields.number(0xffffffff));
                              body.library = fields.text();
                              body.features = fields.number();
                              if (fields.more()) body.ticket = fields.secret();
                            });
}

std::optional<welcome_body> decode_welcome(std::span<const std::byte> wire) {
  return decode<welcome_body>(
      wire, control_type::welcome, [](control_fields& fields, welcome_body& body) {
        body.version = static_cast<std::uint32_t>(fields.number(0xffffffff));
        body.library = fields.text();
        body.features = fields.number();
        if (fields.more()) body.identity = fields.text();
      });
}

std::optional<open_body> decode_open(std::span<const std::byte> wire) {
  return decode<open_body>(wire, control_type::open, [](control_fields& fields, open_body& body) {
    body.name = fields.text();
    body.wanted = fields.rights();
  });
}

std::optional<opened_body> decode_opened(std::span<const std::byte> wire) {
  return decode<opened_body>(wire, control_type::opened,
                             [](control_fields& fields, opened_body& body) {
                               body.described = fields.described();
                               body.descriptor = fields.binary();
                               if (!fields.more()) return;  // from before there were stores
                               body.limit = fields.number();
                               body.window = fields.number();
                               body.held = fields.boolean();
                               if (fields.more()) body.identity = fields.number();
                             });
}

std::optional<stat_body> decode_stat(std::span<const std::byte> wire) {
  return decode<stat_body>(wire, control_type::stat, [](control_fields& fields, stat_body& body) {
    body.name = fields.text();
  });
}

std::optional<described_body> decode_described(std::span<const std::byte> wire) {
  return decode<described_body>(
      wire, control_type::described,
      [](control_fields& fields, auto& body) { body.described = fields.described(); });
}

std::optional<list_body> decode_list(std::span<const std::byte> wire) {
  return decode<list_body>(wire, control_type::list, [](control_fields& fields, list_body& body) {
    body.after = fields.text();
    if (fields.more()) body.directory = fields.text();
  });
}

std::optional<listed_body> decode_listed(std::span<const std::byte> wire) {
  return decode<listed_body>(
      wire, control_type::listed, [](control_fields& fields, listed_body& body) {
        fields.each([&](control_fields& entries) { body.entries.push_back(entries.described()); });
        body.more = fields.boolean();
        if (fields.more()) body.unserved = fields.number(most_unserved);
      });
}

std::optional<revoke_body> decode_revoke(std::span<const std::byte> wire) {
  return decode<revoke_body>(wire, control_type::revoke,
                             [](control_fields& fields, revoke_body& body) {
                               body.region = fields.number();
                               body.name = fields.text();
                             });
}

std::optional<create_body> decode_create(std::span<const std::byte> wire) {
  return decode<create_body>(wire, control_type::create,
                             [](control_fields& fields, create_body& body) {
                               body.name = fields.text();
                               body.wanted = fields.rights();
                               body.mode = fields.creation();
                             });
}

std::optional<commit_body> decode_commit(std::span<const std::byte> wire) {
  return decode<commit_body>(wire, control_type::commit,
                             [](control_fields& fields, commit_body& body) {
                               body.region = fields.number();
                               body.durable = fields.boolean();
                               if (fields.more()) body.released = fields.boolean();
                             });
}

std::optional<release_body> decode_release(std::span<const std::byte> wire) {
  return decode<release_body>(
      wire, control_type::release,
      [](control_fields& fields, release_body& body) { body.region = fields.number(); });
}

std::optional<remove_body> decode_remove(std::span<const std::byte> wire) {
  return decode<remove_body>(
      wire, control_type::remove,
      [](control_fields& fields, remove_body& body) { body.name = fields.text(); });
}

std::optional<make_directory_body> decode_make_directory(std::span<const std::byte> wire) {
  return decode<make_directory_body>(
      wire, control_type::make_directory,
      [](control_fields& fields, make_directory_body& body) { body.name = fields.text(); });
}

std::optional<lend_body> decode_lend(std::span<const std::byte> wire) {
  return decode<lend_body>(wire, control_type::lend, [](control_fields& fields, lend_body& body) {
    body.ticket = fields.secret();
  });
}

std::optional<rename_body> decode_rename(std::span<const std::byte> wire) {
  return decode<rename_body>(wire, control_type::rename,
                             [](control_fields& fields, rename_body& body) {
                               body.from = fields.text();
                               body.to = fields.text();
                               body.exclusive = fields.boolean();
                             });
}

std::optional<resize_body> decode_resize(std::span<const std::byte> wire) {
  return decode<resize_body>(wire, control_type::resize,
                             [](control_fields& fields, resize_body& body) {
                               body.name = fields.text();
                               body.size = fields.number();
                               if (fields.more()) body.region = fields.number();
                             });
}

std::optional<measure_body> decode_measure(std::span<const std::byte> wire) {
  return decode<measure_body>(wire, control_type::measure,
                              [](control_fields& fields, measure_body& body) {
                                body.region = fields.number();
                                body.known = fields.number();
                                body.wait = fields.number();
                              });
}

std::optional<digest_body> decode_digest(std::span<const std::byte> wire) {
  return decode<digest_body>(wire, control_type::digest,
                             [](control_fields& fields, digest_body& body) {
                               body.region = fields.number();
                               body.offset = fields.number();
                               body.length = fields.number();
                               body.chunk = fields.number();
                             });
}

std::optional<digested_body> decode_digested(std::span<const std::byte> wire) {
  std::vector<std::byte> bytes;
  auto decoded = decode<digested_body>(
      wire, control_type::digested,
      [&](control_fields& fields, digested_body&) { bytes = fields.binary(); });
  constexpr std::size_t size = 2 * sizeof(std::uint64_t);
  if (!decoded || bytes.size() % size != 0) return std::nullopt;
  wire_reader halves(bytes);
  for (std::size_t i = 0; i < bytes.size() / size; ++i) {
    content_digest& next = decoded->digests.emplace_back();
    next.high = halves.take<std::uint64_t>();
    next.low = halves.take<std::uint64_t>();
  }
  return decoded;
}

std::optional<put_body> decode_put(std::span<const std::byte> wire) {
  return decode<put_body>(wire, control_type::put, [](control_fields& fields, put_body& body) {
    body.exclusive = fields.boolean();
    body.durable = fields.boolean();
    fields.each([&](control_fields& files) {
      files.within([&](control_fields& file) {
        std::string name = file.text();
        body.files.push_back({std::move(name), file.binary()});
      });
    });
  });
}

std::optional<stored_body> decode_stored(std::span<const std::byte> wire) {
  return decode<stored_body>(
      wire, control_type::stored, [](control_fields& fields, stored_body& body) {
        fields.each([&](control_fields& outcomes) {
          const auto status = static_cast<std::uint32_t>(outcomes.number(0xffffffff));
          body.outcomes.push_back(status == 0 ? std::error_code() : status_error(status));
        });
      });
}

std::optional<fetch_body> decode_fetch(std::span<const std::byte> wire) {
  return decode<fetch_body>(
      wire, control_type::fetch, [](control_fields& fields, fetch_body& body) {
        body.most = fields.number();
        fields.each([&](control_fields& names) { body.names.push_back(names.text()); });
      });
}

std::optional<fetched_body> decode_fetched(std::span<const std::byte> wire) {
  return decode<fetched_body>(wire, control_type::fetched,
                              [](control_fields& fields, fetched_body& body) {
                                fields.each([&](control_fields& contents) {
                                  auto& next = body.contents.emplace_back();
                                  contents.within([&](control_fields& content) {
                                    if (content.more()) next = content.binary();
                                  });
                                });
                              });
}

}  // namespace ucx::detail
