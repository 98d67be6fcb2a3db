// Functions of a peer, their signatures, and the bytes of their calls: docs/reference/calls.md.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "ucx/call_reader.hpp"
#include "ucx/call_writer.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/error.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// The types of a function's arguments and result, as text: `(i32,list<f64>)->text`. Equal
/// functions have equal texts, whatever their language and compiler. `docs/reference/calls.md` has
/// the grammar.
class UCXIO_EXPORT call_signature {
 public:
  /// Bytes of the text at most.
  static constexpr std::size_t max_size = 4096;

  /// Reads a text. There is one text of each signature: without blanks.
  /// Errors: invalid_argument: it does not follow the grammar, is too long, or has types deeper
  /// than `call_writer::max_depth`. not_supported: it has a word that is kept for later versions.
  explicit call_signature(std::string_view text, std::error_code& ec = throws);

  const std::string& text() const noexcept { return text_; }
  /// Returns the hash of the text, which a call carries.
  const content_digest& hash() const noexcept { return hash_; }

  friend bool operator==(const call_signature& a, const call_signature& b) noexcept {
    return a.text_ == b.text_;
  }

 private:
  std::string text_;
  content_digest hash_;
};

/// A function that a peer has, by name and signature. Makes the bytes of calls, and reads the bytes
/// of answers. It knows no C++ types: those are added by `remote_procedure` in `<ucx/rpc.hpp>`.
class UCXIO_EXPORT call_function {
 public:
  /// Bytes of a name at most, with its version.
  static constexpr std::size_t max_name_size = 128;

  /// Names a function: `add`, or `add/2` for its second version.
  /// Errors: those of `call_signature`; bad_name.
  call_function(std::string_view name, std::string_view signature, std::error_code& ec = throws);

  /// Returns the name; none where the constructor failed.
  const std::string& name() const noexcept { return name_; }
  const call_signature& signature() const noexcept { return signature_; }

  /// Returns the bytes of a call, for `call_table::dispatch` at the peer.
  /// Errors: those of `arguments.written()`; bad_name: the constructor failed.
  std::vector<std::byte> encode(const call_writer& arguments, std::error_code& ec = throws) const;

  /// Reads an answer. Returns a reader of the result.
  /// Lifetime: `answer`, while the reader is used.
  /// Errors: no_such_name: the peer has no such function. signature_differs: its signature is
  /// another one; the text has both. call_failed: the function threw; `error::cause()` has its
  /// code, and `no_space` where its result is too large. permission_denied: the peer refuses the
  /// call. busy: it has too many calls under way. timed_out: the deadline passed before the
  /// function ran. version_mismatch, not_supported: one side is of a later version.
  /// protocol_error: the peer could not read the call, or `answer` is none.
  call_reader decode(std::span<const std::byte> answer, std::error_code& ec = throws) const;
  call_reader decode(std::vector<std::byte>&& answer, std::error_code& ec = throws) const = delete;

 private:
  std::string name_;
  call_signature signature_;
};

}  // namespace ucx
