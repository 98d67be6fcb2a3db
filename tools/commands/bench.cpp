#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ios>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "commands/commands.hpp"
#include "output/entry_text.hpp"
#include "output/exit_code.hpp"
#include "output/old_names.hpp"
#include "output/output.hpp"
#include "output/printable.hpp"
#include "output/size_option.hpp"
#include "output/speed.hpp"
#include "output/transfer_method_reason.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/stream_options.hpp"

namespace ucx::tool {
namespace {

using clock = std::chrono::steady_clock;

constexpr double least_seconds = 0.001;
constexpr double most_seconds = 3600;
constexpr std::uint64_t most_of_a_call = std::uint64_t{1} << 30U;
/// The most bytes that are written: they are kept here meanwhile.
constexpr std::uint64_t most_written = std::uint64_t{64} << 20U;

struct bench_options {
  std::string url;
  double seconds = 1;
  std::vector<std::uint64_t> sizes;
  std::vector<std::size_t> connections;
  bool write = false;
  bool json = false;
};

struct findings {
  entry described;
  std::vector<std::string> transports;
  std::string method;
  std::string why;
  double connecting = 0;  // milliseconds
  double opening = 0;
  latency small;
  std::vector<throughput> reads;
  std::vector<throughput> writes;
};

double milliseconds_since(clock::time_point start) {
  return std::chrono::duration<double, std::milli>(clock::now() - start).count();
}

void check(const bench_options& options) {
  // "nan" is a number to the parser, and in no range.
  if (!(options.seconds >= least_seconds && options.seconds <= most_seconds)) {
    throw failure(exit_code::usage, fmt::format("--seconds: {} is not between {} and {}",
                                                options.seconds, least_seconds, most_seconds));
  }
  for (const std::uint64_t size : options.sizes) {
    if (size >= 1 && size <= most_of_a_call) continue;
    throw failure(exit_code::usage,
                  fmt::format("--size: {} is not between 1 and {} bytes", size, most_of_a_call));
  }
  for (const std::size_t connections : options.connections) {
    if (connections >= 1 && connections <= stream_options::max_connections) continue;
    throw failure(exit_code::usage, fmt::format("--connections: {} is not between 1 and {}",
                                                connections, stream_options::max_connections));
  }
}

/// Returns the sizes to try in a region: of the usual ones those that it has room for.
std::vector<std::size_t> sizes_for(const bench_options& options, std::uint64_t room,
                                   const url& from) {
  std::vector<std::size_t> chosen;
  for (const std::uint64_t size : options.sizes) {
    if (size > room) {
      throw failure(exit_code::usage, fmt::format("{}: --size {} is more than the {} bytes there",
                                                  to_string(from), size, room));
    }
    chosen.push_back(static_cast<std::size_t>(size));
  }
  if (!chosen.empty()) return chosen;
  for (const std::uint64_t size : {4U << 10U, 64U << 10U, 1U << 20U}) {
    if (size <= room) chosen.push_back(static_cast<std::size_t>(size));
  }
  if (chosen.empty()) chosen.push_back(static_cast<std::size_t>(room));
  return chosen;
}

using std::ios_base;

/// The name that streams measure: each of them opens it for itself.
struct subject {
  client& server;
  std::string name;
  std::uint64_t size = 0;
  std::vector<std::size_t> sizes;
  std::chrono::nanoseconds duration;

  fstream open(ios_base::openmode mode, std::size_t connections) const {
    fstream opened(server, name, mode | ios_base::binary,
                   stream_options{.connections = connections});
    if (!opened.is_open()) throw error(opened.error(), opened.error_message());
    opened.exceptions(ios_base::badbit | ios_base::failbit);
    return opened;
  }
};

throughput over(const fstream& measured_stream, std::size_t connections, throughput measured) {
  measured.connections = connections;
  measured.used = measured_stream.rdbuf()->statistics().connections;
  return measured;
}

void measure_reads(findings& found, const subject& of, std::size_t connections) {
  for (const std::size_t size : of.sizes) {
    fstream in = of.open(ios_base::in, connections);
    found.reads.push_back(over(in, connections, measure_reading(in, of.size, size, of.duration)));
  }
}

/// Writes what is there already, so that nothing changes.
void measure_writes(findings& found, const subject& of) {
  const std::uint64_t largest = *std::max_element(of.sizes.begin(), of.sizes.end());
  std::vector<char> content(
      static_cast<std::size_t>(std::min(of.size, std::max<std::uint64_t>(most_written, largest))));
  for (const std::size_t size : of.sizes) {
    fstream out = of.open(ios_base::in | ios_base::out, 1);
    out.read(content.data(), static_cast<std::streamsize>(content.size()));
    found.writes.push_back(over(out, 1, measure_writing(out, content, size, of.duration)));
  }
}

findings measure(const bench_options& options, const client_settings& settings) {
  check(options);
  const url from = url_with_name(options.url);
  findings found;
  clock::time_point start = clock::now();
  client server = settings.connect(from);
  found.connecting = milliseconds_since(start);
  found.described = server.stat(from.name());
  const auto duration = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(options.seconds));
  subject of{server, std::string(from.name()), 0, {}, duration};
  {
    start = clock::now();
    remote_region region =
        server.open(from.name(), options.write ? access::read_write : access::read);
    found.opening = milliseconds_since(start);
    of.size = region.size();
    if (of.size == 0) {
      throw failure(exit_code::usage, to_string(from) + " is empty: there is nothing to read");
    }
    found.transports = server.transports();
    found.method = ucx::to_string(region.transfer_method());
    found.why = transfer_method_reason(found.described, region, found.transports);
    of.sizes = sizes_for(options, of.size, from);
    found.small = measure_latency(region, duration);
  }
  const std::vector<std::size_t> connections =
      options.connections.empty() ? std::vector<std::size_t>{1} : options.connections;
  for (const std::size_t each : connections) measure_reads(found, of, each);
  if (options.write) measure_writes(found, of);
  return found;
}

/// Returns the end of a line: empty for the one connection that every stream has.
std::string connections_of(const throughput& measured) {
  if (measured.connections == 1) return {};
  const std::string wanted =
      measured.used == measured.connections ? "" : fmt::format(" of {}", measured.connections);
  return fmt::format(", {}{} connections", measured.used, wanted);
}

std::string line_of(const char* what, const throughput& measured) {
  return fmt::format("{:10}  {:.3f} GB/s, {} bytes per call{}\n", what,
                     measured.gigabytes_per_second(), measured.call, connections_of(measured));
}

std::string lines(const findings& found) {
  std::string text = fmt::format(
      "name        {} ({} bytes)\nconnection  {}\ntransfer    {}: {}\n"
      "connect     {:.2f} ms\nopen        {:.3f} ms\n"
      "latency     {:.2f} us min, {:.2f} us median, {:.2f} us p99 ({} reads of {} bytes)\n",
      printable(found.described.name), found.described.size, fmt::join(found.transports, ", "),
      found.method, found.why, found.connecting, found.opening, found.small.min, found.small.median,
      found.small.p99, found.small.reads, found.small.bytes);
  for (const throughput& each : found.reads) text += line_of("read", each);
  for (const throughput& each : found.writes) text += line_of("write", each);
  return text;
}

nlohmann::ordered_json json_of(const std::vector<throughput>& all) {
  nlohmann::ordered_json made = nlohmann::ordered_json::array();
  for (const throughput& each : all) {
    made.push_back({{"size", each.call},
                    {"connections", each.connections},
                    {"connections_used", each.used},
                    {"calls", each.calls},
                    {"seconds", each.seconds},
                    {"gigabytes_per_second", each.gigabytes_per_second()},
                    // Old names, for one version.
                    {"call", each.call},
                    {"lanes", each.connections},
                    {"lanes_used", each.used}});
  }
  return made;
}

nlohmann::ordered_json json_of(const findings& found, const url& server) {
  nlohmann::ordered_json made = to_json(found.described, server);
  made["transports"] = found.transports;
  made["transfer_method"] = found.method;
  made["why"] = found.why;
  made["connect_ms"] = found.connecting;
  made["open_ms"] = found.opening;
  made["latency"] = {
      {"bytes", found.small.bytes}, {"reads", found.small.reads},
      {"min_us", found.small.min},  {"median_us", found.small.median},
      {"p99_us", found.small.p99},  {"least_us", found.small.min}};  // old, for one version
  made["read"] = json_of(found.reads);
  made["write"] = json_of(found.writes);
  made["way"] = found.method;  // old, for one version
  return made;
}

void bench(const bench_options& options, const client_settings& settings) {
  try {
    const findings found = measure(options, settings);
    const url server = url(options.url).server();
    write_out(options.json ? to_document(json_of(found, server)) : lines(found));
  } catch (const error& failed) {
    throw failure(exit_code_of(failed.code()), fmt::format("{}: {}", options.url, failed.what()));
  }
}

}  // namespace

void add_bench(CLI::App& program, client_settings& shared) {
  const auto options = std::make_shared<bench_options>();
  CLI::App& command = *program.add_subcommand(
      "bench", "Measure how fast what is published can be read, and written");
  command.add_option("URL", options->url, "what to read: ucxs://HOST:PORT/NAME")->required();
  command.add_option("--seconds", options->seconds, "for each measurement (default: 1)")
      ->type_name("SECONDS");
  add_sizes(command, "--size", options->sizes,
            "bytes of a call; may be given several times (default: 4K, 64K and 1M)");
  CLI::Option* const connections =
      command
          .add_option("--connections", options->connections,
                      "connections of a stream that reads; each number is measured (default: 1)")
          ->type_name("N[,N...]")
          ->delimiter(',');
  add_old_name(command, "--lanes", connections);
  command.add_flag("--write", options->write,
                   "also write back what was read; changes of others meanwhile may be lost");
  command.add_flag("--json", options->json, "an object");
  add_client_options(command, shared);
  command.footer(
      "Latency: reads of 8 bytes at scattered offsets. Rates: one stream, from the beginning to\n"
      "the end, again and again; flushes count.\n\n"
      "Example:\n"
      "  ucxio bench ucxs://127.0.0.1:7471/weights --size 64K --size 4M\n"
      "  ucxio bench ucxs://127.0.0.1:7471/weights --size 1M --connections 1,2,4");
  command.callback([options, &shared] { bench(*options, shared); });
}

}  // namespace ucx::tool
