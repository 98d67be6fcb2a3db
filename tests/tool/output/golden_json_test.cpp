// What `--json` prints, whole: members, their order and their types. What differs from run to run
// is masked.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

using nlohmann::ordered_json;

class GoldenJson : public ::testing::Test {
 protected:
  GoldenJson() { std::filesystem::create_directories(folder_ / "sub"); }

  /// Returns what a command says, masked.
  std::string told(std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    const command_result result = run_tool(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    ordered_json document = ordered_json::parse(result.out, nullptr, false);
    EXPECT_EQ(result.out, document.dump(2) + '\n');
    mask(document);
    return '\n' + document.dump(2) + '\n';
  }

 private:
  void mask(ordered_json& value) const {
    static const std::set<std::string> measured{"generation",
                                                "connect_ms",
                                                "open_ms",
                                                "reads",
                                                "min_us",
                                                "least_us",
                                                "median_us",
                                                "p99_us",
                                                "calls",
                                                "seconds",
                                                "gigabytes_per_second"};
    static const std::set<std::string> versions{"ucxio", "ucx", "version"};
    const std::string address = server_.url().substr(std::string("ucx://").size());
    if (value.is_string()) {
      std::string text = value;
      const std::size_t at = text.find(address);
      if (at != std::string::npos) value = text.replace(at, address.size(), "HOST:PORT");
    } else if (value.is_array()) {
      for (ordered_json& each : value) mask(each);
    } else if (value.is_object()) {
      for (auto& [name, member] : value.items()) {
        mask(member);
        if (measured.contains(name) && member.is_number()) member = 0;
        if (versions.contains(name) && member.is_string()) member = "1.2.3";
        if (name == "protocol" && member.is_number_unsigned()) member = 1;
        if (name == "transports" && !member.empty() && member.front().is_string()) {
          member = {"tcp/lo"};
        }
      }
    }
  }

 protected:
  const temporary_directory folder_;
  const tool_server server_{{"--ucx", "a file=" + folder_.make("x", "12345678").string(), "--store",
                             "s=" + (folder_ / "").string()}};
};

TEST_F(GoldenJson, OfLs) {
  const std::string expected = R"(
[
  {
    "name": "a file",
    "size": 8,
    "type": "file",
    "access": "read",
    "memory": "host",
    "device": null,
    "generation": 0,
    "url": "ucx://HOST:PORT/a%20file"
  },
  {
    "name": "s/x",
    "size": 8,
    "type": "file",
    "access": "read",
    "memory": "host",
    "device": null,
    "generation": 0,
    "url": "ucx://HOST:PORT/s/x"
  }
]
)";
  EXPECT_EQ(told({"ls", server_.url()}), expected);
  EXPECT_EQ(told({"ls", "-l", server_.url()}), expected);
}

TEST_F(GoldenJson, OfLsOfADirectory) {
  EXPECT_EQ(told({"ls", server_.url("s")}), R"(
[
  {
    "name": "s/sub",
    "size": 0,
    "type": "directory",
    "access": "read",
    "memory": "host",
    "device": null,
    "generation": 0,
    "url": "ucx://HOST:PORT/s/sub"
  },
  {
    "name": "s/x",
    "size": 8,
    "type": "file",
    "access": "read",
    "memory": "host",
    "device": null,
    "generation": 0,
    "url": "ucx://HOST:PORT/s/x"
  }
]
)");
}

TEST_F(GoldenJson, OfStat) {
  EXPECT_EQ(told({"stat", server_.url("a%20file")}), R"(
{
  "name": "a file",
  "size": 8,
  "type": "file",
  "access": "read",
  "memory": "host",
  "device": null,
  "generation": 0,
  "url": "ucx://HOST:PORT/a%20file"
}
)");
}

TEST_F(GoldenJson, OfInfo) {
  EXPECT_EQ(told({"info"}), R"(
{
  "ucxio": "1.2.3",
  "ucx": "1.2.3",
  "protocol": 1,
  "transports": [
    "tcp/lo"
  ],
  "unused": []
}
)");
  EXPECT_EQ(told({"info", server_.url("a%20file")}), R"(
{
  "ucxio": "1.2.3",
  "ucx": "1.2.3",
  "protocol": 1,
  "transports": [
    "tcp/lo"
  ],
  "unused": [],
  "server": {
    "url": "ucx://HOST:PORT",
    "version": "1.2.3",
    "transports": [
      "tcp/lo"
    ],
    "protection": "none",
    "identity": "anybody",
    "unused": [],
    "why_not_rma": "this side has no RDMA hardware that it may use",
    "names": [
      {
        "name": "a file",
        "size": 8,
        "type": "file",
        "access": "read",
        "memory": "host",
        "device": null,
        "generation": 0,
        "url": "ucx://HOST:PORT/a%20file",
        "transfer_method": "message",
        "why": "a file: the server reads it when it is asked",
        "region": "region 1 (8 bytes) at HOST:PORT",
        "huge_pages": null,
        "way": "message"
      }
    ]
  }
}
)");
}

TEST_F(GoldenJson, OfBench) {
  EXPECT_EQ(told({"bench", "--seconds", "0.01", "--size", "4", server_.url("a%20file")}), R"(
{
  "name": "a file",
  "size": 8,
  "type": "file",
  "access": "read",
  "memory": "host",
  "device": null,
  "generation": 0,
  "url": "ucx://HOST:PORT/a%20file",
  "transports": [
    "tcp/lo"
  ],
  "transfer_method": "message",
  "why": "a file: the server reads it when it is asked",
  "connect_ms": 0,
  "open_ms": 0,
  "latency": {
    "bytes": 8,
    "reads": 0,
    "min_us": 0,
    "median_us": 0,
    "p99_us": 0,
    "least_us": 0
  },
  "read": [
    {
      "size": 4,
      "connections": 1,
      "connections_used": 1,
      "calls": 0,
      "seconds": 0,
      "gigabytes_per_second": 0,
      "call": 4,
      "lanes": 1,
      "lanes_used": 1
    }
  ],
  "write": [],
  "way": "message"
}
)");
}

TEST_F(GoldenJson, OfHash) {
  EXPECT_EQ(told({"hash", "--chunks", server_.url("a%20file")}), R"(
[
  {
    "location": "ucx://HOST:PORT/a%20file",
    "size": 8,
    "xxh3_128": "155c340ccffd12dc2b3f7d2855dc91fc",
    "place": "ucx://HOST:PORT/a%20file",
    "chunk_size": 1048576,
    "chunks": [
      "155c340ccffd12dc2b3f7d2855dc91fc"
    ]
  }
]
)");
}

}  // namespace
}  // namespace ucx::test
