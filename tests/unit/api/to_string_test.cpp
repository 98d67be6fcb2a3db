// The text of enumerators and of values, as users print them. Each enumerator has to be here:
// support/checks/check_enumerations.py looks.
#include "ucx/to_string.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <initializer_list>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>

#include "support/files/temporary_directory.hpp"
#include "ucx/access.hpp"
#include "ucx/access_rules.hpp"
#include "ucx/connection_report.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/endpoint_options.hpp"
#include "ucx/entry.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/payload.hpp"
#include "ucx/peer_address.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/remote_descriptor.hpp"
#include "ucx/remote_file.hpp"
#include "ucx/request.hpp"
#include "ucx/scheduled_call.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/tensor.hpp"
#include "ucx/url.hpp"
#include "ucx/version.hpp"
#include "ucx/worker.hpp"

// Types of another library. Their texts are those of their own `<<`, or of what they convert to.
namespace others {

struct animal {};
std::ostream& operator<<(std::ostream& out, const animal&) { return out << "an animal"; }
struct dog : animal {};
std::string to_string(const dog&) { return "a dog"; }

struct amount {
  operator int() const { return 5; }  // NOLINT(google-explicit-constructor): that is the case
};
std::string to_string(const amount&) { return "five"; }

enum level { low, high };
std::string to_string(level) { return "a level"; }

enum class color { red };
[[maybe_unused]] std::string_view enum_name(color) { return "red"; }

/// Namespace ucx is one of its associated namespaces, with all `to_string` of it.
template <class Place>
struct holder {
  operator Place() const { return Place(); }  // NOLINT(google-explicit-constructor): so they do
};
template <class Place>
std::ostream& operator<<(std::ostream& out, const holder<Place>&) {
  return out << "a holder";
}

}  // namespace others

namespace {

enum class stranger { one };
struct foreigner {};

template <class T, class Stream = std::ostream>
concept has_text = requires(Stream& out, const T& value) {
  out << value;
};

/// Returns what `Stream` writes for the value.
template <class Stream, class Value>
std::string written(const Value& value) {
  const ucx::test::temporary_directory directory;
  Stream out((directory / "text").string());
  out << value;
  out.close();
  std::string line;
  std::getline(std::ifstream(directory / "text"), line);
  return line;
}

static_assert(has_text<ucx::close_mode> && has_text<ucx::url>);
// What is not of the library stays what it was, and so does what of it has no text.
static_assert(!has_text<stranger> && !has_text<foreigner> && !has_text<ucx::worker_options>);
static_assert(!has_text<others::color, ucx::ofstream> && !has_text<foreigner, ucx::ofstream>);

}  // namespace

namespace ucx::test {
namespace {

/// Returns what the values print, with blanks between them.
template <class Value>
std::string printed(std::initializer_list<Value> values) {
  std::ostringstream out;
  for (const Value& each : values) {
    if (&each != values.begin()) out << ' ';
    out << each;
  }
  return out.str();
}

TEST(EnumerationText, NamesOfMemoryAndFiles) {
  EXPECT_EQ(printed({access::read, access::write, access::read_write}), "read write read_write");
  EXPECT_EQ(
      printed({atomic_operation::load, atomic_operation::store, atomic_operation::compare_exchange,
               atomic_operation::add, atomic_operation::bit_and, atomic_operation::bit_or,
               atomic_operation::bit_xor}),
      "load store compare_exchange add bit_and bit_or bit_xor");
  EXPECT_EQ(
      printed({creation::replace, creation::exclusive, creation::append, creation::overwrite}),
      "replace exclusive append overwrite");
  EXPECT_EQ(printed({entry_type::memory, entry_type::file, entry_type::directory}),
            "memory file directory");
  EXPECT_EQ(printed({huge_pages::none, huge_pages::advise, huge_pages::collapse}),
            "none advise collapse");
  EXPECT_EQ(printed({element_type::boolean, element_type::i8, element_type::i16, element_type::i32,
                     element_type::i64, element_type::u8, element_type::u16, element_type::u32,
                     element_type::u64, element_type::f16, element_type::bf16, element_type::f32,
                     element_type::f64, element_type::c64, element_type::c128}),
            "boolean i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128");
  EXPECT_EQ(printed({memory_kind::host, memory_kind::cuda, memory_kind::cuda_managed,
                     memory_kind::rocm, memory_kind::cuda_pinned, memory_kind::other}),
            "host cuda cuda_managed rocm cuda_pinned other");
  EXPECT_EQ(printed({missing_resource::fallback, missing_resource::strict}), "fallback strict");
  EXPECT_EQ(printed({transfer_method::automatic, transfer_method::message, transfer_method::rma,
                     transfer_method::mapped, transfer_method::cma, transfer_method::cuda_ipc}),
            "automatic message rma mapped cma cuda_ipc");
}

TEST(EnumerationText, NamesOfConnectionsAndMessages) {
  EXPECT_EQ(printed({close_mode::flush, close_mode::abort}), "flush abort");
  EXPECT_EQ(printed({connect_wait::for_peer, connect_wait::none}), "for_peer none");
  EXPECT_EQ(
      printed({connection_state::connecting, connection_state::active, connection_state::closing,
               connection_state::failed, connection_state::closed}),
      "connecting active closing failed closed");
  EXPECT_EQ(printed({error_handling_mode::automatic, error_handling_mode::peer,
                     error_handling_mode::none}),
            "automatic peer none");
  EXPECT_EQ(printed({send_memory::borrowed, send_memory::copied}), "borrowed copied");
  EXPECT_EQ(printed({send_until::reusable, send_until::matched}), "reusable matched");
  EXPECT_EQ(printed({slow_reader_policy::wait, slow_reader_policy::drop}), "wait drop");
  EXPECT_EQ(printed({stream_amount::some, stream_amount::all}), "some all");
  EXPECT_EQ(printed({backpressure::wait, backpressure::fail}), "wait fail");
}

TEST(EnumerationText, NamesOfContextsAndWorkers) {
  EXPECT_EQ(
      printed({access_right::none, access_right::list, access_right::read, access_right::write,
               access_right::create, access_right::remove, access_right::pipes, access_right::agent,
               access_right::fabric, access_right::call}),
      "none list read write create remove pipes agent fabric call");
  EXPECT_EQ(to_string(access_right::all), "list|read|write|create|remove|pipes|agent|fabric|call");
  EXPECT_EQ(printed({feature::none, feature::rma, feature::am, feature::wakeup, feature::tag,
                     feature::stream}),
            "none rma am wakeup tag stream");
  EXPECT_EQ(printed({log_level::none, log_level::error, log_level::warning, log_level::info,
                     log_level::debug, log_level::trace}),
            "none error warning info debug trace");
  EXPECT_EQ(printed({ownership::borrow, ownership::take}), "borrow take");
  EXPECT_EQ(printed({precedence::options, precedence::environment}), "options environment");
  EXPECT_EQ(printed({progress_mode::automatic, progress_mode::caller, progress_mode::polling_thread,
                     progress_mode::sleeping_thread, progress_mode::external}),
            "automatic caller polling_thread sleeping_thread external");
  EXPECT_EQ(printed({progress_phase::before, progress_phase::after}), "before after");
  EXPECT_EQ(printed({repetition::once, repetition::every_round}), "once every_round");
  EXPECT_EQ(printed({thread_mode::automatic, thread_mode::single, thread_mode::multi}),
            "automatic single multi");
}

TEST(EnumerationText, OfOperations) {
  EXPECT_EQ(printed({operation_kind::none, operation_kind::read, operation_kind::write,
                     operation_kind::atomic, operation_kind::notify, operation_kind::wait_notify}),
            "none read write atomic notify wait_notify");
  EXPECT_EQ(printed({operation_kind::flush, operation_kind::send, operation_kind::receive,
                     operation_kind::stream_send, operation_kind::stream_receive,
                     operation_kind::close, operation_kind::call}),
            "flush send receive stream_send stream_receive close call");
}

TEST(EnumerationText, NamesOfErrors) {
  EXPECT_EQ(printed({errc::invalid_argument, errc::out_of_range, errc::no_space,
                     errc::permission_denied, errc::no_such_region}),
            "invalid_argument out_of_range no_space permission_denied no_such_region");
  EXPECT_EQ(printed({errc::stale_region, errc::revoked, errc::bad_descriptor, errc::bad_address,
                     errc::version_mismatch}),
            "stale_region revoked bad_descriptor bad_address version_mismatch");
  EXPECT_EQ(printed({errc::protocol_error, errc::bad_configuration, errc::feature_disabled,
                     errc::not_supported, errc::host_not_found}),
            "protocol_error bad_configuration feature_disabled not_supported host_not_found");
  EXPECT_EQ(printed({errc::unreachable, errc::connection_refused, errc::connection_reset,
                     errc::address_in_use, errc::timed_out}),
            "unreachable connection_refused connection_reset address_in_use timed_out");
  EXPECT_EQ(
      printed({errc::canceled, errc::closed, errc::would_deadlock, errc::busy, errc::no_memory}),
      "canceled closed would_deadlock busy no_memory");
  EXPECT_EQ(printed({errc::no_shared_memory, errc::no_lockable_memory, errc::too_many_files,
                     errc::message_truncated, errc::io_error}),
            "no_shared_memory no_lockable_memory too_many_files message_truncated io_error");
  EXPECT_EQ(printed({errc::unexpected, errc::bad_url, errc::bad_name, errc::no_such_name,
                     errc::already_exists}),
            "unexpected bad_url bad_name no_such_name already_exists");
  EXPECT_EQ(printed({errc::content_changed, errc::not_secure, errc::closed_by_peer, errc::no_rdma,
                     errc::would_block}),
            "content_changed not_secure closed_by_peer no_rdma would_block");
  EXPECT_EQ(printed({errc::header_too_long, errc::no_such_handler, errc::message_refused,
                     errc::message_withdrawn, errc::empty_buffer}),
            "header_too_long no_such_handler message_refused message_withdrawn empty_buffer");
  EXPECT_EQ(printed({errc::buffer_too_small, errc::bad_pool, errc::pooled_buffer,
                     errc::checksum_mismatch, errc::broken_pipe}),
            "buffer_too_small bad_pool pooled_buffer checksum_mismatch broken_pipe");
  EXPECT_EQ(printed({errc::too_many_store_files, errc::too_many_client_files,
                     errc::too_many_writers, errc::stale_store, errc::forked_child}),
            "too_many_store_files too_many_client_files too_many_writers stale_store forked_child");
  EXPECT_EQ(printed({errc::signature_differs, errc::call_failed, errc::call_outcome_unknown}),
            "signature_differs call_failed call_outcome_unknown");
  EXPECT_EQ(static_cast<int>(errc::call_outcome_unknown), 58);
}

TEST(EnumerationText, TellsAllFeaturesOfACombination) {
  EXPECT_EQ(printed({feature::rma | feature::stream}), "rma|stream");
}

TEST(EnumerationText, TellsValuesThatAreNoEnumerators) {
  EXPECT_EQ(printed({static_cast<progress_mode>(99)}), "unknown");
  EXPECT_EQ(printed({static_cast<memory_kind>(99)}), "unknown");
  EXPECT_EQ(printed({static_cast<access>(0)}), "unknown");
  EXPECT_EQ(printed({static_cast<errc>(0)}), "unknown");
  EXPECT_EQ(printed({static_cast<log_level>(99)}), "unknown");
  EXPECT_EQ(printed({static_cast<slow_reader_policy>(99)}), "unknown");
}

TEST(EnumerationText, FillsTheWidthOfTheStream) {
  std::ostringstream out;
  out << std::setw(8) << std::setfill('.') << close_mode::abort;
  EXPECT_EQ(out.str(), "...abort");
}

TEST(ValueText, IsPrintedAsToStringSaysIt) {
  EXPECT_EQ(printed({url("ucx://127.0.0.1:7471/a")}), "ucx://127.0.0.1:7471/a");
  EXPECT_EQ(printed({socket_address("[::1]:7471")}), "[::1]:7471");
  EXPECT_EQ(printed({version_number{1, 13, 1}}), "1.13.1");
  EXPECT_EQ(printed({worker_address()}), to_string(worker_address()));
  EXPECT_EQ(printed({content_digest()}), to_string(content_digest()));
  EXPECT_EQ(printed({remote_descriptor()}), to_string(remote_descriptor()));
}

template <class Value>
void expect_their_text(const Value& value, std::string_view theirs) {
  EXPECT_EQ(written<std::ofstream>(value), theirs);
  EXPECT_EQ(written<ucx::ofstream>(value), theirs);
}

TEST(ValueText, OfOthersIsTheirsInStreamsOfThisLibraryToo) {
  expect_their_text(others::animal(), "an animal");
  expect_their_text(others::dog(), "an animal");
  expect_their_text(others::amount(), "5");
  expect_their_text(others::high, "1");
  expect_their_text(others::holder<url>(), "a holder");
  expect_their_text(version_number{1, 13, 1}, "1.13.1");
}

}  // namespace
}  // namespace ucx::test
