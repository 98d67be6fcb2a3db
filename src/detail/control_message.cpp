#include "detail/control_message.hpp"

#include <msgpack.hpp>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "detail/frame.hpp"
#include "detail/name.hpp"
#include "detail/wire.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_kind.hpp"

namespace ucx::detail {
namespace {

// Limits of what is read; a message is no longer than what its channel carries anyway.
constexpr std::size_t most_elements = 4096;   // of one array
constexpr std::size_t longest_text = 2048;    // names have 1024 bytes at most
constexpr std::size_t longest_binary = 8192;  // a descriptor with the largest key
constexpr std::size_t deepest = 4;

constexpr std::byte magic[]{std::byte{'U'}, std::byte{'C'}};
constexpr auto last_type = static_cast<std::uint8_t>(control_type::digested);
constexpr std::uint8_t header_version =
    1;  // of the sixteen bytes; bodies go by what hello agreed on

/// Writes a message: the header, then one array.
class writer {
 public:
  writer(const control_header& header, std::uint32_t elements) : packer_(*this) {
    bytes_.put(std::span(magic));
    bytes_.put(header_version);
    bytes_.put(static_cast<std::uint8_t>(header.type));
    bytes_.put(header.status);
    bytes_.put(header.request);
    if (elements > 0) packer_.pack_array(elements);
  }
  /// What the packer calls.
  void write(const char* data, std::size_t size) {
    bytes_.put(std::as_bytes(std::span(data, size)));
  }

  writer& put(std::uint64_t value) {
    packer_.pack(value);  // as short as it can be
    return *this;
  }
  writer& put_bool(bool value) {
    value ? packer_.pack_true() : packer_.pack_false();
    return *this;
  }
  writer& put(std::string_view text) {
    packer_.pack_str(static_cast<std::uint32_t>(text.size()));
    packer_.pack_str_body(text.data(), static_cast<std::uint32_t>(text.size()));
    return *this;
  }
  writer& put(std::span<const std::byte> binary) {
    packer_.pack_bin(static_cast<std::uint32_t>(binary.size()));
    packer_.pack_bin_body(reinterpret_cast<const char*>(binary.data()),
                          static_cast<std::uint32_t>(binary.size()));
    return *this;
  }
  writer& put(const entry& described) {
    packer_.pack_array(7);
    put(std::string_view(described.name));
    put(static_cast<std::uint64_t>(described.type));
    put(described.size);
    put(static_cast<std::uint64_t>(described.granted));
    put(static_cast<std::uint64_t>(described.kind));
    put(described.generation);
    const auto since_1970 =
        std::chrono::duration_cast<std::chrono::nanoseconds>(described.modified.time_since_epoch());
    return put(static_cast<std::uint64_t>(std::max<std::int64_t>(since_1970.count(), 0)));
  }
  void begin_array(std::size_t size) { packer_.pack_array(static_cast<std::uint32_t>(size)); }

  std::vector<std::byte> take() { return std::move(bytes_.bytes()); }

 private:
  wire_writer bytes_;
  msgpack::packer<writer> packer_;
};

/// Reads the elements of an array in order. What does not fit makes it fail for good, so that a
/// decoder looks once, at the end.
class reader {
 public:
  explicit reader(const msgpack::object& array) noexcept {
    if (array.type != msgpack::type::ARRAY) return;
    next_ = array.via.array.ptr;
    end_ = next_ + array.via.array.size;
    ok_ = true;
  }

  bool ok() const noexcept { return ok_; }
  /// Returns whether there are more: those that only later versions send.
  bool more() const noexcept { return ok_ && next_ != end_; }

  std::uint64_t number(std::uint64_t most = ~std::uint64_t{0}) noexcept {
    const msgpack::object* element = take(msgpack::type::POSITIVE_INTEGER);
    if (element == nullptr) return 0;
    if (element->via.u64 > most) ok_ = false;
    return element->via.u64;
  }
  bool boolean() noexcept {
    const msgpack::object* element = take(msgpack::type::BOOLEAN);
    return element != nullptr && element->via.boolean;
  }
  std::string text() {
    const msgpack::object* element = take(msgpack::type::STR);
    return element == nullptr ? std::string()
                              : std::string(element->via.str.ptr, element->via.str.size);
  }
  std::vector<std::byte> binary() {
    const msgpack::object* element = take(msgpack::type::BIN);
    if (element == nullptr) return {};
    const auto* first = reinterpret_cast<const std::byte*>(element->via.bin.ptr);
    return {first, first + element->via.bin.size};
  }
  const msgpack::object* array() noexcept { return take(msgpack::type::ARRAY); }

  access rights() noexcept {
    const std::uint64_t value = number(3);
    if (value == 0) ok_ = false;
    return ok_ ? static_cast<access>(value) : access::read;
  }
  create_mode creation() noexcept {
    const std::uint64_t value = number(static_cast<std::uint64_t>(create_mode::overwrite));
    if (value == 0) ok_ = false;
    return ok_ ? static_cast<create_mode>(value) : create_mode::replace;
  }
  entry described() {
    entry made;
    const msgpack::object* element = array();
    if (element == nullptr) return made;
    reader fields(*element);
    made.name = fields.text();
    const bool named = complaint_about_name(made.name).empty();
    const std::uint64_t type = fields.number(3);
    made.size = fields.number();
    made.granted = fields.rights();
    made.kind = kind_of(fields.number());
    made.generation = fields.number();
    if (fields.more()) {
      constexpr std::uint64_t latest = ~std::uint64_t{0} >> 1U;
      made.modified = std::chrono::system_clock::time_point(
          std::chrono::duration_cast<std::chrono::system_clock::duration>(
              std::chrono::nanoseconds(static_cast<std::int64_t>(fields.number(latest)))));
    }
    ok_ = fields.ok() && named && type != 0;
    if (ok_) made.type = static_cast<entry_type>(type);
    return made;
  }

 private:
  /// A kind that only a later version knows is another one here.
  static memory_kind kind_of(std::uint64_t value) noexcept {
    return value <= static_cast<std::uint64_t>(memory_kind::rocm) ? static_cast<memory_kind>(value)
                                                                  : memory_kind::other;
  }
  const msgpack::object* take(msgpack::type::object_type type) noexcept {
    if (!ok_ || next_ == end_ || next_->type != type) {
      ok_ = false;
      return nullptr;
    }
    return next_++;
  }

  const msgpack::object* next_ = nullptr;
  const msgpack::object* end_ = nullptr;
  bool ok_ = false;
};

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
    const msgpack::unpack_limit limits(most_elements, 0, longest_text, longest_binary, 0, deepest);
    std::size_t used = 0;
    const msgpack::object_handle unpacked =
        msgpack::unpack(reinterpret_cast<const char*>(packed.data()), packed.size(), used,
                        by_reference, nullptr, limits);
    reader fields(unpacked.get());
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
  return writer(header, 0).take();
}

std::vector<std::byte> encode_control(const control_header& header, const hello_body& body) {
  writer made(header, 4);
  made.put(body.oldest).put(body.newest).put(std::string_view(body.library)).put(body.features);
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const welcome_body& body) {
  writer made(header, 3);
  made.put(body.version).put(std::string_view(body.library)).put(body.features);
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const open_body& body) {
  writer made(header, 2);
  made.put(std::string_view(body.name)).put(static_cast<std::uint64_t>(body.wanted));
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const opened_body& body) {
  writer made(header, 6);
  made.put(body.described).put(std::span(body.descriptor)).put(body.limit).put(body.window);
  made.put_bool(body.held).put(body.identity);
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const stat_body& body) {
  return writer(header, 1).put(std::string_view(body.name)).take();
}

std::vector<std::byte> encode_control(const control_header& header, const described_body& body) {
  return writer(header, 1).put(body.described).take();
}

std::vector<std::byte> encode_control(const control_header& header, const list_body& body) {
  writer made(header, body.directory ? 2 : 1);
  made.put(std::string_view(body.after));
  if (body.directory) made.put(std::string_view(*body.directory));
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const listed_body& body) {
  writer made(header, 2);
  made.begin_array(body.entries.size());
  for (const entry& each : body.entries) made.put(each);
  made.put_bool(body.more);
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const revoke_body& body) {
  return writer(header, 2).put(body.region).put(std::string_view(body.name)).take();
}

std::vector<std::byte> encode_control(const control_header& header, const create_body& body) {
  writer made(header, 3);
  made.put(std::string_view(body.name)).put(static_cast<std::uint64_t>(body.wanted));
  made.put(static_cast<std::uint64_t>(body.mode));
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const commit_body& body) {
  return writer(header, 3).put(body.region).put_bool(body.durable).put_bool(body.released).take();
}

std::vector<std::byte> encode_control(const control_header& header, const release_body& body) {
  return writer(header, 1).put(body.region).take();
}

std::vector<std::byte> encode_control(const control_header& header, const remove_body& body) {
  return writer(header, 1).put(std::string_view(body.name)).take();
}

std::vector<std::byte> encode_control(const control_header& header, const rename_body& body) {
  writer made(header, 3);
  made.put(std::string_view(body.from)).put(std::string_view(body.to)).put_bool(body.exclusive);
  return made.take();
}

std::vector<std::byte> encode_control(const control_header& header, const resize_body& body) {
  return writer(header, 3).put(std::string_view(body.name)).put(body.size).put(body.region).take();
}

std::vector<std::byte> encode_control(const control_header& header, const measure_body& body) {
  return writer(header, 3).put(body.region).put(body.known).put(body.wait).take();
}

std::vector<std::byte> encode_control(const control_header& header, const digest_body& body) {
  writer made(header, 4);
  return made.put(body.region).put(body.offset).put(body.length).put(body.chunk).take();
}

std::vector<std::byte> encode_control(const control_header& header, const digested_body& body) {
  wire_writer halves;
  for (const content_digest& each : body.digests) {
    halves.put(each.high);
    halves.put(each.low);
  }
  const std::vector<std::byte> bytes = std::move(halves.bytes());
  return writer(header, 1).put(std::span<const std::byte>(bytes)).take();
}

std::optional<std::vector<std::byte>> refuse_unknown(std::span<const std::byte> wire) {
  wire_reader bytes(wire);
  const std::span<const std::byte> letters = bytes.take(2);
  const auto version = bytes.take<std::uint8_t>();
  const auto type = bytes.take<std::uint8_t>();
  control_header answer;
  bytes.take<std::uint32_t>();
  answer.request = bytes.take<std::uint64_t>();
  if (!bytes.ok() || letters[0] != magic[0] || letters[1] != magic[1] ||
      version != header_version || type <= last_type) {
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
  if (!bytes.ok() || letters[0] != magic[0] || letters[1] != magic[1] ||
      version != header_version || type < static_cast<std::uint8_t>(control_type::hello) ||
      type > last_type) {
    return std::nullopt;
  }
  header.type = static_cast<control_type>(type);
  return header;
}

std::optional<hello_body> decode_hello(std::span<const std::byte> wire) {
  return decode<hello_body>(wire, control_type::hello, [](reader& fields, hello_body& body) {
    body.oldest = static_cast<std::uint32_t>(fields.number(0xffffffff));
    body.newest = static_cast<std::uint32_t>(fields.number(0xffffffff));
    body.library = fields.text();
    body.features = fields.number();
  });
}

std::optional<welcome_body> decode_welcome(std::span<const std::byte> wire) {
  return decode<welcome_body>(wire, control_type::welcome, [](reader& fields, welcome_body& body) {
    body.version = static_cast<std::uint32_t>(fields.number(0xffffffff));
    body.library = fields.text();
    body.features = fields.number();
  });
}

std::optional<open_body> decode_open(std::span<const std::byte> wire) {
  return decode<open_body>(wire, control_type::open, [](reader& fields, open_body& body) {
    body.name = fields.text();
    body.wanted = fields.rights();
  });
}

std::optional<opened_body> decode_opened(std::span<const std::byte> wire) {
  return decode<opened_body>(wire, control_type::opened, [](reader& fields, opened_body& body) {
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
  return decode<stat_body>(wire, control_type::stat,
                           [](reader& fields, stat_body& body) { body.name = fields.text(); });
}

std::optional<described_body> decode_described(std::span<const std::byte> wire) {
  return decode<described_body>(wire, control_type::described, [](reader& fields, auto& body) {
    body.described = fields.described();
  });
}

std::optional<list_body> decode_list(std::span<const std::byte> wire) {
  return decode<list_body>(wire, control_type::list, [](reader& fields, list_body& body) {
    body.after = fields.text();
    if (fields.more()) body.directory = fields.text();
  });
}

std::optional<listed_body> decode_listed(std::span<const std::byte> wire) {
  bool entries_ok = true;
  auto decoded =
      decode<listed_body>(wire, control_type::listed, [&](reader& fields, listed_body& body) {
        if (const msgpack::object* page = fields.array()) {
          reader entries(*page);
          for (std::uint32_t i = 0; i < page->via.array.size && entries.ok(); ++i) {
            body.entries.push_back(entries.described());
          }
          entries_ok = entries.ok();
        }
        body.more = fields.boolean();
      });
  return entries_ok ? std::move(decoded) : std::nullopt;
}

std::optional<revoke_body> decode_revoke(std::span<const std::byte> wire) {
  return decode<revoke_body>(wire, control_type::revoke, [](reader& fields, revoke_body& body) {
    body.region = fields.number();
    body.name = fields.text();
  });
}

std::optional<create_body> decode_create(std::span<const std::byte> wire) {
  return decode<create_body>(wire, control_type::create, [](reader& fields, create_body& body) {
    body.name = fields.text();
    body.wanted = fields.rights();
    body.mode = fields.creation();
  });
}

std::optional<commit_body> decode_commit(std::span<const std::byte> wire) {
  return decode<commit_body>(wire, control_type::commit, [](reader& fields, commit_body& body) {
    body.region = fields.number();
    body.durable = fields.boolean();
    if (fields.more()) body.released = fields.boolean();
  });
}

std::optional<release_body> decode_release(std::span<const std::byte> wire) {
  return decode<release_body>(wire, control_type::release, [](reader& fields, release_body& body) {
    body.region = fields.number();
  });
}

std::optional<remove_body> decode_remove(std::span<const std::byte> wire) {
  return decode<remove_body>(wire, control_type::remove,
                             [](reader& fields, remove_body& body) { body.name = fields.text(); });
}

std::optional<rename_body> decode_rename(std::span<const std::byte> wire) {
  return decode<rename_body>(wire, control_type::rename, [](reader& fields, rename_body& body) {
    body.from = fields.text();
    body.to = fields.text();
    body.exclusive = fields.boolean();
  });
}

std::optional<resize_body> decode_resize(std::span<const std::byte> wire) {
  return decode<resize_body>(wire, control_type::resize, [](reader& fields, resize_body& body) {
    body.name = fields.text();
    body.size = fields.number();
    if (fields.more()) body.region = fields.number();
  });
}

std::optional<measure_body> decode_measure(std::span<const std::byte> wire) {
  return decode<measure_body>(wire, control_type::measure, [](reader& fields, measure_body& body) {
    body.region = fields.number();
    body.known = fields.number();
    body.wait = fields.number();
  });
}

std::optional<digest_body> decode_digest(std::span<const std::byte> wire) {
  return decode<digest_body>(wire, control_type::digest, [](reader& fields, digest_body& body) {
    body.region = fields.number();
    body.offset = fields.number();
    body.length = fields.number();
    body.chunk = fields.number();
  });
}

std::optional<digested_body> decode_digested(std::span<const std::byte> wire) {
  std::vector<std::byte> bytes;
  auto decoded =
      decode<digested_body>(wire, control_type::digested,
                            [&](reader& fields, digested_body&) { bytes = fields.binary(); });
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

}  // namespace ucx::detail
