#pragma once

// This header and boost_stream.hpp are the only ones that include Boost. The user's build has to
// find Boost.Iostreams 1.70 or newer. The library itself does without.
#include <boost/iostreams/categories.hpp>
#include <ios>
#include <memory>
#include <optional>
#include <streambuf>
#include <string>
#include <string_view>
#include <system_error>

#include "ucx/boost_stream.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/stream.hpp"
#include "ucx/stream_options.hpp"

namespace ucx {

namespace detail {

/// The state that the copies of a device share: the bytes, and a failure that Boost has to be told.
///
/// Boost ignores the outcome of a flush that belongs to a seek or a close, or is behind a filter.
/// Its buffers keep the bytes that they could not hand over. They hand them over again before they
/// do anything else. After a failed write, the position is the first byte that is not known to be
/// visible. The kept bytes do not belong there. So every write and flush repeats the failure until
/// a seek, and writes nothing. By then Boost has dropped its bytes. Boost may have ignored a
/// failure that was thrown only once: then the seek throws it, and the next seek works.
class device_core {
 public:
  device_core(std::ios_base::openmode mode, const stream_options& options, std::error_code& ec,
              const remote_region& region)
      : name_(region.description()), region_(region, mode, options, ec), bytes_(region_) {}
  device_core(std::ios_base::openmode mode, const stream_options& options, std::error_code& ec,
              const std::string& name)
      : name_(name), bytes_(file_) {
    if (file_.open(name, mode | std::ios_base::binary, options) == nullptr) ec = file_.error();
  }
  device_core(std::ios_base::openmode mode, const stream_options& options, std::error_code& ec,
              client& from, std::string_view name)
      : name_(name), bytes_(file_) {
    if (file_.open(from, name, mode, options) == nullptr) ec = file_.error();
  }
  device_core(const device_core&) = delete;
  device_core& operator=(const device_core&) = delete;
  ~device_core() = default;

  bool is_open() const noexcept { return region_.is_open() || file_.is_open(); }

  std::streamsize read(char* into, std::streamsize count) {
    require_open("reading");
    const std::streamsize got = bytes_.sgetn(into, count);
    // -1 also for a read of nothing: a restriction reads nothing at its end, and takes 0 for "not
    // now".
    return got != 0 ? got : -1;
  }

  std::streamsize write(const char* from, std::streamsize count) {
    require_open("writing");
    if (failed_) repeat_failure();
    if (bytes_.sputn(from, count) < count) fail_until_seek();
    return count;
  }

  void flush() {
    require_open("flushing");
    const bool visible = bytes_.pubsync() == 0;
    if (failed_) repeat_failure();
    if (!visible) fail_until_seek();
  }

  std::streampos seek(std::streamoff offset, std::ios_base::seekdir from) {
    require_open("seeking in");
    if (failed_ && !told_twice_) repeat_failure();
    failed_.reset();
    const std::streampos reached = bytes_.pubseekoff(offset, from);
    if (reached == std::streampos(std::streamoff(-1))) throw failure(error());
    return reached;
  }

  void close() {
    if (!is_open()) return;
    std::error_code ec;
    if (by_name()) {
      if (file_.close() == nullptr) ec = file_.error();
    } else {
      region_.close(ec);
    }
    if (ec && !failed_) failed_ = failure(ec);
    if (failed_) throw ucx::error(*failed_);
  }

  std::error_code error() const noexcept {
    if (failed_) return failed_->code();
    return by_name() ? file_.error() : region_.error();
  }

  std::string error_message() const {
    if (failed_) return failed_->what();
    return by_name() ? file_.error_message() : region_.error_message();
  }

  ucx::error opening_failure(std::error_code why) const {
    return by_name() ? failure(why) : ucx::error(why, "opening a device over " + name_);
  }

 private:
  bool by_name() const noexcept { return &bytes_ == &file_; }

  void require_open(const char* what) const {
    if (!is_open()) {
      throw ucx::error(errc::closed, std::string(what) + " a closed device over " + name_);
    }
  }
  ucx::error failure(std::error_code why) const {
    std::string text = error_message();
    // The exception adds what its code says.
    const std::string ending = ": " + why.message();
    if (text.ends_with(ending)) text.resize(text.size() - ending.size());
    return {why, text};
  }
  [[noreturn]] void fail_until_seek() {
    failed_ = failure(error());
    told_twice_ = false;
    throw ucx::error(*failed_);
  }
  [[noreturn]] void repeat_failure() {
    told_twice_ = true;
    throw ucx::error(*failed_);
  }

  const std::string name_;
  remote_streambuf region_;
  filebuf file_;
  std::streambuf& bytes_;  // region_ or file_, as opened
  std::optional<ucx::error> failed_;
  bool told_twice_ = false;
};

}  // namespace detail

/// The common part of the devices for Boost.Iostreams. A device works over a peer's region, or over
/// a published name, given by URL or by client and name. It also opens a local path, as `filebuf`
/// does. `docs/reference/streams.md` is the contract. A device is a handle: its copies, of which
/// Boost makes many, are one device with one position. A move copies. The last copy closes, and
/// reports nothing.
/// Errors: failures throw `ucx::error`, because Boost ignores the results of writes and flushes.
/// Threads: one thread at a time for all copies of a device together, and as the worker's.
template <std::ios_base::openmode mode>
class boost_device {
 public:
  using char_type = char;

  /// Opens `region`. Sends nothing. Lifetime and Errors: those of `remote_streambuf`.
  explicit boost_device(const remote_region& region, const stream_options& options = {},
                        std::error_code& ec = throws) {
    open(options, ec, region);
  }
  /// Opens a URL or a local path. Errors and Cost: those of `filebuf::open`.
  explicit boost_device(const std::string& name, const stream_options& options = {},
                        std::error_code& ec = throws) {
    open(options, ec, name);
  }
  /// Opens the name `name` of the server of `from`. Errors and Cost: those of `filebuf::open`.
  boost_device(client& from, std::string_view name, const stream_options& options = {},
               std::error_code& ec = throws) {
    open(options, ec, from, name);
  }

  /// Returns whether the device was opened, and none of the copies was closed.
  bool is_open() const noexcept { return core_->is_open(); }

  /// Flushes, then closes the device for all copies. Later operations fail with `errc::closed`.
  /// Idempotent.
  /// Errors: that of a write or flush that no seek has followed, even if it was thrown before; else
  /// the first failure that was not thrown.
  void close(std::error_code& ec = throws) {
    if (&ec == &throws) return core_->close();
    ec.clear();
    try {
      core_->close();
    } catch (const std::system_error& failure) {
      ec = failure.code();
    }
  }

  /// Returns the cause of the last failure; a stream of Boost's has only set badbit then. The next
  /// operation that succeeds clears it. Any copy tells: `stream->error()`, or the caller's own
  /// copy.
  std::error_code error() const noexcept { return core_->error(); }
  /// Returns the error as a text that says what was tried, and on what; empty without an error.
  std::string error_message() const { return core_->error_message(); }

  /// Makes all written bytes visible at the peer. Drops the bytes that were read ahead, which may
  /// be older than the peer's. Returns true.
  /// Errors: those of earlier writes.
  bool flush() { return core_->flush(), true; }
  /// Sets the position to `offset` from the beginning, the position or the end, and returns the new
  /// position. Sends nothing.
  /// Errors: out_of_range, and the position stays; a failed write or flush that was thrown only
  /// once.
  std::streampos seek(std::streamoff offset, std::ios_base::seekdir from) {
    return core_->seek(offset, from);
  }

  /// Returns the size for a buffer of Boost, in front of the buffers of `stream_options`.
  std::streamsize optimal_buffer_size() const noexcept { return 4096; }

 protected:
  // Copies only, so that a device that was moved from is still a device.
  boost_device(const boost_device&) = default;
  boost_device& operator=(const boost_device&) = default;
  ~boost_device() = default;

  std::shared_ptr<detail::device_core> core_;

 private:
  template <class... From>
  void open(const stream_options& options, std::error_code& ec, From&... from) {
    std::error_code failed;
    core_ = std::make_shared<detail::device_core>(mode, options, failed, from...);
    if (&ec != &throws) {
      ec = failed;
    } else if (failed) {
      throw core_->opening_failure(failed);
    }
  }
};

/// Reads, as a Boost Source that seeks: input_seekable, closable, flushable, optimally buffered.
class remote_source : public boost_device<std::ios_base::in> {
 public:
  struct category : boost::iostreams::input_seekable,
                    boost::iostreams::device_tag,
                    boost::iostreams::closable_tag,
                    boost::iostreams::flushable_tag,
                    boost::iostreams::optimally_buffered_tag {};

  using boost_device::boost_device;

  /// Reads `count` bytes at the position, or fewer at the end of the data. Returns -1 at the end.
  /// Errors: those of a transfer. The position then stays, and a repeated call tries again.
  std::streamsize read(char* into, std::streamsize count) { return core_->read(into, count); }
};

/// Writes in place, as a Boost Sink that seeks: output_seekable, closable, flushable, optimally
/// buffered. A local file is emptied.
class remote_sink : public boost_device<std::ios_base::out> {
 public:
  struct category : boost::iostreams::output_seekable,
                    boost::iostreams::device_tag,
                    boost::iostreams::closable_tag,
                    boost::iostreams::flushable_tag,
                    boost::iostreams::optimally_buffered_tag {};

  using boost_device::boost_device;

  /// Writes all `count` bytes at the position, and returns `count`.
  /// Completes: when `from` can be used again. The bytes are visible at the peer after `flush()` or
  /// `close()`.
  /// Errors: no_space, after all bytes that fit were taken; those of earlier writes. After a
  /// failure the position is the first byte that is not known to be visible. Until a seek, write,
  /// flush and close then throw that failure again.
  std::streamsize write(const char* from, std::streamsize count) {
    return core_->write(from, count);
  }
};

/// Reads and writes in place, as a Boost SeekableDevice with one position: seekable, closable,
/// flushable, optimally buffered. A local file must exist.
class remote_device : public boost_device<std::ios_base::in | std::ios_base::out> {
 public:
  struct category : boost::iostreams::seekable_device_tag,
                    boost::iostreams::closable_tag,
                    boost::iostreams::flushable_tag,
                    boost::iostreams::optimally_buffered_tag {};

  using boost_device::boost_device;

  /// Like `remote_source::read` and `remote_sink::write`.
  std::streamsize read(char* into, std::streamsize count) { return core_->read(into, count); }
  std::streamsize write(const char* from, std::streamsize count) {
    return core_->write(from, count);
  }
};

}  // namespace ucx
