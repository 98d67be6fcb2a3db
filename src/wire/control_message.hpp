// The messages between client and server: docs/reference/wire-format.md, "Control messages".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "ucx/access.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/entry.hpp"
#include "wire/ticket_secret.hpp"

namespace ucx::detail {

/// The version of the control protocol that this library speaks.
inline constexpr std::uint32_t control_version = 1;

/// Kinds of messages; the values are of the wire.
enum class control_type : std::uint8_t {
  hello = 1,      ///< Client, first: the versions and features that it knows.
  welcome = 2,    ///< Server: the version and features that both use, or why not.
  open = 3,       ///< Client: asks for the region behind a name.
  opened = 4,     ///< Server: its descriptor, or why not.
  stat = 5,       ///< Client: asks what a name is.
  described = 6,  ///< Server: that, or why not.
  list = 7,       ///< Client: asks for a page of names.
  listed = 8,     ///< Server: the page, or why not.
  revoke = 9,     ///< Server: a region that was opened is withdrawn. Not answered.
  bye = 10,       ///< Either: will say nothing more. Not answered.

  // Of stores: only where both sides have that feature.
  create = 11,   ///< Client: asks for a file to be written; answered by `opened`.
  commit = 12,   ///< Client: a file that it has written is whole.
  done = 13,     ///< Server: what was asked is done, or why not.
  release = 14,  ///< Client: is done with a region that it opened. Not answered.
  remove = 15,   ///< Client: a name goes.
  rename = 16,   ///< Client: a file gets another name.
  resize = 17,   ///< Client: a file gets another size.

  // Of files that change their size: only where both sides have that feature.
  measure = 18,  ///< Client: asks how long a file is by now; answered by `described`.

  // Of hashes of files: only where both sides have that feature.
  digest = 19,    ///< Client: asks for hashes of what is in a file.
  digested = 20,  ///< Server: these, or why not.

  // Of short files that travel whole: only where both sides have that feature.
  put = 21,      ///< Client: files, with all that is to be in them.
  stored = 22,   ///< Server: how that went with each.
  fetch = 23,    ///< Client: asks for all that is in some files.
  fetched = 24,  ///< Server: that.

  // Of empty directories: only where both sides have that feature.
  make_directory = 25,  ///< Client: asks for a directory; answered by `done`.

  // Of tickets: only where both sides have that feature.
  lend = 26,  ///< Client: another process may act for it once; answered by `done`.
};

/// The features that hello and welcome tell, as bits.
struct control_feature {
  static constexpr std::uint64_t stores = 1;
  static constexpr std::uint64_t measuring = 2;     ///< Files are asked again how long they are.
  static constexpr std::uint64_t digests = 4;       ///< The owner hashes what is in files.
  static constexpr std::uint64_t contents = 8;      ///< Short files travel whole.
  static constexpr std::uint64_t directories = 16;  ///< Directories are made by themselves.
  static constexpr std::uint64_t tickets = 32;      ///< A client acts for another one.
  static constexpr std::uint64_t all =
      stores | measuring | digests | contents | directories | tickets;
};

/// Begins every message; the body, if any, is one MessagePack array behind it.
struct control_header {
  static constexpr std::size_t size = 16;

  control_type type = control_type::bye;
  std::uint32_t status = 0;   ///< 0, or the `errc` that answers the request; then only `welcome`
                              ///< has a body.
  std::uint64_t request = 0;  ///< Chosen by the client, echoed by the answer.
};

/// Room in a page of names for what is not its entries.
constexpr std::size_t page_overhead = control_header::size + 32;

/// The room that a question takes at the receiver beside its bytes.
constexpr std::size_t room_of_message = std::size_t{4} << 10U;

/// Returns the header of what answers a question.
inline control_header answer_to(const control_header& asked, control_type type) noexcept {
  control_header answer;
  answer.type = type;
  answer.request = asked.request;
  return answer;
}

struct hello_body {
  std::uint32_t oldest = control_version;
  std::uint32_t newest = control_version;
  std::string library = {};  ///< The sender's version, for people.
  std::uint64_t features = 0;
  std::optional<ticket_secret> ticket = {};  ///< The sender acts for the client that lent it.
};

struct welcome_body {
  std::uint32_t version = control_version;  ///< The one that both speak; else the server's newest.
  std::string library = {};
  std::uint64_t features = 0;
  std::string identity = {};  ///< Of the client, for people; empty of earlier versions.
};

struct open_body {
  std::string name = {};
  access wanted = access::read;
};

struct opened_body {
  entry described = {};
  std::vector<std::byte> descriptor = {};  ///< As remote_descriptor::encode() gives it.
  // Of what a store has; else 0.
  std::uint64_t limit = 0;   ///< So long the region may become; 0: its size is fixed.
  std::uint64_t window = 0;  ///< So many bytes that are written may be unconfirmed.
  bool held = false;         ///< It has to be released.
  /// Stays with a file whatever is written to it; 0: not a file, or not known.
  std::uint64_t identity = 0;
};

struct stat_body {
  std::string name = {};
};

struct described_body {
  entry described = {};
};

struct list_body {
  std::string after = {};  ///< The page begins with the next name in order of bytes.
  /// If set, only entries directly in this directory of a store, with its directories; else every
  /// name.
  std::optional<std::string> directory = {};
};

struct listed_body {
  std::vector<entry> entries = {};
  bool more = false;
  /// Of the first page of a directory: how many names in it are of nothing that is served.
  std::uint64_t unserved = 0;
};

/// The largest count of `listed_body::unserved`.
inline constexpr std::uint64_t most_unserved = 0xffffffff;

struct revoke_body {
  std::uint64_t region = 0;
  std::string name = {};
};

/// How `create` finds or makes its file.
enum class create_mode : std::uint8_t {
  replace = 1,    ///< A new file, which appears when it is committed, instead of what is there.
  fresh = 2,      ///< As `replace`, but nothing of that name may be there.
  append = 3,     ///< The file that is there, as it is; it is made where there is none.
  overwrite = 4,  ///< As `replace`; but memory and files that were published by name are opened.
};

struct create_body {
  std::string name = {};
  access wanted = access::write;
  create_mode mode = create_mode::replace;
};

struct commit_body {
  std::uint64_t region = 0;
  bool durable = false;   ///< On the device, before it is answered.
  bool released = false;  ///< The client is done with the region, unless it can be committed again.
};

struct release_body {
  std::uint64_t region = 0;
};

struct remove_body {
  std::string name = {};
};

struct rename_body {
  std::string from = {};
  std::string to = {};
  bool exclusive = false;  ///< Nothing may have the new name.
};

struct resize_body {
  std::string name = {};  ///< Empty where it is the file of `region`.
  std::uint64_t size = 0;
  std::uint64_t region = 0;  ///< One that the client writes; 0: none.
};

struct measure_body {
  std::uint64_t region = 0;
  std::uint64_t known = 0;  ///< So long the client knows it to be.
  std::uint64_t wait = 0;   ///< Nanoseconds: for so long it need not be answered while that holds.
};

struct digest_body {
  /// An answer has so many at most.
  static constexpr std::uint64_t most_chunks = 256;

  std::uint64_t region = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t chunk = 0;  ///< Bytes that each hash is of; the last one of what is left.
};

struct digested_body {
  std::vector<content_digest> digests = {};
};

struct make_directory_body {
  std::string name = {};
};

struct put_body {
  struct file {
    std::string name = {};
    std::vector<std::byte> content = {};
  };
  /// A question of this kind, or a `fetch`, is about so many files at most.
  static constexpr std::size_t most_files = 64;

  bool exclusive = false;  ///< Nothing of these names may be there; else it is replaced.
  bool durable = false;    ///< On the device, before it is answered.
  std::vector<file> files = {};
};

struct stored_body {
  std::vector<std::error_code> outcomes = {};  ///< Of each.
};

struct fetch_body {
  std::uint64_t most = 0;  ///< So long each may be.
  std::vector<std::string> names = {};
};

struct fetched_body {
  /// The contents of the first files, as many as fit. One is empty where the server has the file
  /// not at hand, or the file is longer, or not there. The answer to `open` then says why.
  std::vector<std::optional<std::vector<std::byte>>> contents = {};
};

struct lend_body {
  ticket_secret ticket = {};
};

/// Returns the wire form of a message.
std::vector<std::byte> encode_control(const control_header& header);
std::vector<std::byte> encode_control(const control_header& header, const hello_body& body);
std::vector<std::byte> encode_control(const control_header& header, const welcome_body& body);
std::vector<std::byte> encode_control(const control_header& header, const open_body& body);
std::vector<std::byte> encode_control(const control_header& header, const opened_body& body);
std::vector<std::byte> encode_control(const control_header& header, const stat_body& body);
std::vector<std::byte> encode_control(const control_header& header, const described_body& body);
std::vector<std::byte> encode_control(const control_header& header, const list_body& body);
std::vector<std::byte> encode_control(const control_header& header, const listed_body& body);
std::vector<std::byte> encode_control(const control_header& header, const revoke_body& body);
std::vector<std::byte> encode_control(const control_header& header, const create_body& body);
std::vector<std::byte> encode_control(const control_header& header, const commit_body& body);
std::vector<std::byte> encode_control(const control_header& header, const release_body& body);
std::vector<std::byte> encode_control(const control_header& header, const remove_body& body);
std::vector<std::byte> encode_control(const control_header& header, const rename_body& body);
std::vector<std::byte> encode_control(const control_header& header, const resize_body& body);
std::vector<std::byte> encode_control(const control_header& header, const measure_body& body);
std::vector<std::byte> encode_control(const control_header& header, const digest_body& body);
std::vector<std::byte> encode_control(const control_header& header, const digested_body& body);
std::vector<std::byte> encode_control(const control_header& header,
                                      const make_directory_body& body);
std::vector<std::byte> encode_control(const control_header& header, const lend_body& body);
std::vector<std::byte> encode_control(const control_header& header, const put_body& body);
std::vector<std::byte> encode_control(const control_header& header, const stored_body& body);
std::vector<std::byte> encode_control(const control_header& header, const fetch_body& body);
std::vector<std::byte> encode_control(const control_header& header, const fetched_body& body);

/// Returns what somebody of the version `library`, who serves no names, answers to a client's
/// hello; nothing to other messages.
std::optional<std::vector<std::byte>> refuse_greeting(std::span<const std::byte> wire,
                                                      std::string library);

/// Returns what answers a request that only a later version knows; nothing to anything else.
std::optional<std::vector<std::byte>> refuse_unknown(std::span<const std::byte> wire);

/// Returns how many bytes `described` takes in a `listed` message, at most.
std::size_t encoded_size(const entry& described) noexcept;

/// Reads the header; nothing if the bytes do not begin with one.
std::optional<control_header> decode_control(std::span<const std::byte> wire) noexcept;

/// Each reads the body of a whole message; nothing unless it is one of that type, complete and
/// within its limits. Elements of a later version, behind the known ones, are passed over.
std::optional<hello_body> decode_hello(std::span<const std::byte> wire);
std::optional<welcome_body> decode_welcome(std::span<const std::byte> wire);
std::optional<open_body> decode_open(std::span<const std::byte> wire);
std::optional<opened_body> decode_opened(std::span<const std::byte> wire);
std::optional<stat_body> decode_stat(std::span<const std::byte> wire);
std::optional<described_body> decode_described(std::span<const std::byte> wire);
std::optional<list_body> decode_list(std::span<const std::byte> wire);
std::optional<listed_body> decode_listed(std::span<const std::byte> wire);
std::optional<revoke_body> decode_revoke(std::span<const std::byte> wire);
std::optional<create_body> decode_create(std::span<const std::byte> wire);
std::optional<commit_body> decode_commit(std::span<const std::byte> wire);
std::optional<release_body> decode_release(std::span<const std::byte> wire);
std::optional<remove_body> decode_remove(std::span<const std::byte> wire);
std::optional<rename_body> decode_rename(std::span<const std::byte> wire);
std::optional<resize_body> decode_resize(std::span<const std::byte> wire);
std::optional<measure_body> decode_measure(std::span<const std::byte> wire);
std::optional<digest_body> decode_digest(std::span<const std::byte> wire);
std::optional<digested_body> decode_digested(std::span<const std::byte> wire);
std::optional<make_directory_body> decode_make_directory(std::span<const std::byte> wire);
std::optional<lend_body> decode_lend(std::span<const std::byte> wire);
std::optional<put_body> decode_put(std::span<const std::byte> wire);
std::optional<stored_body> decode_stored(std::span<const std::byte> wire);
std::optional<fetch_body> decode_fetch(std::span<const std::byte> wire);
std::optional<fetched_body> decode_fetched(std::span<const std::byte> wire);

}  // namespace ucx::detail
