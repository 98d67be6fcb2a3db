// Certificates of servers and clients, as users of the tool have them.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/basics/changed_variable.hpp"
#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/files/test_authority.hpp"
#include "support/process/command.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;
using arguments = std::vector<std::string>;

class CertificateOfServe : public ::testing::Test {
 protected:
  CertificateOfServe() {
    servers_.crl = clients_.crl = authority_.write_crl();
    folder_.make("notes.txt", "text");
  }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  arguments with(arguments words, const certificate_files& files) const {
    for (const std::string& each :
         {std::string("--token-file"), file("none"), std::string("--cert"), files.cert.string(),
          std::string("--key"), files.key.string(), std::string("--ca"), files.ca.string()}) {
      words.push_back(each);
    }
    if (!files.crl.empty()) words.insert(words.end(), {"--crl", files.crl.string()});
    return words;
  }
  arguments serving() const { return with({"--tls", file("notes.txt")}, servers_); }

  temporary_directory folder_;
  test_authority authority_{folder_ / ""};
  certificate_files servers_ =
      authority_.issue("server", {.names = "IP:127.0.0.1", .usage = "serverAuth"});
  certificate_files clients_ = authority_.issue("client");
};

TEST_F(CertificateOfServe, ProvesBothSides) {
  tool_server server(serving());
  const command_result read = run_tool(with({"cat", server.url("notes.txt")}, clients_));
  EXPECT_EQ(read.out, "text") << read.err;
  const std::string told = run_tool(with({"info", server.url("notes.txt")}, clients_)).out;
  EXPECT_THAT(told, HasSubstr("protection  TLS 1.3, by certificates of both sides\n"));
  EXPECT_THAT(told, HasSubstr("identity    certificate \"uri:spiffe://cluster/build\"\n"));
  const command_result by_environment =
      command("/bin/sh", {"-c", "UCXIO_CERT=" + clients_.cert.string() + " UCXIO_KEY=" +
                                    clients_.key.string() + " UCXIO_CA=" + clients_.ca.string() +
                                    ' ' + tool_program() + " cat " + server.url("notes.txt")})
          .finish();
  EXPECT_EQ(by_environment.out, "text") << by_environment.err;
}

TEST_F(CertificateOfServe, SaysWhatIsWrong) {
  tool_server server(serving());
  const auto failure_of = [&](const certificate_files& files) {
    const command_result made = run_tool(with({"ls", server.url()}, files));
    EXPECT_NE(made.code, 0);
    return made.err;
  };
  EXPECT_THAT(failure_of(servers_), HasSubstr("refused the certificate"));
  certificate_files mixed = clients_;
  mixed.key = servers_.key;
  EXPECT_THAT(failure_of(mixed), HasSubstr("does not belong to the certificate"));
  const test_authority other(folder_ / "", "other");
  certificate_files distrustful = clients_;
  distrustful.ca = other.ca();
  EXPECT_THAT(failure_of(distrustful), HasSubstr("not from a CA"));
  expect_failure(run_tool({"ls", server.url(), "--cert", clients_.cert.string()}), 1, "--key");
}

TEST_F(CertificateOfServe, IsReadAgainAtSighup) {
  const arguments words = serving();
  arguments all{"-c", "exec \"$0\" \"$@\" 2>'" + file("err") + "'", tool_program(), "serve",
                "--quiet"};
  all.insert(all.end(), words.begin(), words.end());
  child_process server("/bin/sh", all);
  const auto url = server.read_line(patience(std::chrono::seconds(30)));
  ASSERT_TRUE(url) << content_of(folder_ / "err");
  const auto says = [&](const std::string& text) {
    return soon([&] { return content_of(folder_ / "err").find(text) != std::string::npos; });
  };
  std::ofstream(servers_.crl) << "garbage";
  server.send_signal(SIGHUP);
  EXPECT_TRUE(says("error: the certificates stay as they were")) << content_of(folder_ / "err");
  clients_.crl.clear();
  const arguments reading = with({"cat", *url + "/notes.txt"}, clients_);
  EXPECT_EQ(run_tool(reading).out, "text");
  authority_.revoke(clients_);
  authority_.write_crl();
  server.send_signal(SIGHUP);
  EXPECT_TRUE(says("the certificates were read again")) << content_of(folder_ / "err");
  EXPECT_THAT(run_tool(reading).err, HasSubstr("refused the certificate"));
}

/// The variables of a user that connects elsewhere change nothing of the user's own servers.
class CertificateVariables : public CertificateOfServe {
 protected:
  CertificateVariables() {
    std::filesystem::create_directory(folder_ / "run");
    std::filesystem::permissions(folder_ / "run", std::filesystem::perms::owner_all);
    std::filesystem::create_directory(folder_ / "store");
    std::ofstream(folder_ / "store/x") << "a text";
  }
  /// Starts a server with these variables. This process has none of them.
  tool_server served(const arguments& words) const {
    const changed_variable cert("UCXIO_CERT", servers_.cert.c_str());
    const changed_variable key("UCXIO_KEY", servers_.key.c_str());
    const changed_variable ca("UCXIO_CA", servers_.ca.c_str());
    return tool_server(words);
  }

 private:
  const changed_variable token_{"UCXIO_TOKEN", nullptr};
  const changed_variable config_{"XDG_CONFIG_HOME", (folder_ / "config").c_str()};
  const changed_variable run_{"XDG_RUNTIME_DIR", (folder_ / "run").c_str()};
};

TEST_F(CertificateVariables, LetNoClientIn) {
  const tool_server server = served({file("notes.txt")});
  const command_result refused = run_tool(with({"cat", server.url("notes.txt")}, clients_));
  EXPECT_THAT(refused.err, HasSubstr("refused the certificate"));
  EXPECT_EQ(run_tool({"cat", server.url("notes.txt")}).out, "text");
}

TEST_F(CertificateVariables, AreNoneOfItsAgent) {
  const tool_server server = served({"--agent", "--store", file("store")});
  const command_result copied =
      run_tool({"cp", "--compress", "zstd", server.url("x"), file("copy")});
  EXPECT_EQ(copied.code, 0) << copied.err;
  EXPECT_EQ(content_of(folder_ / "copy"), "a text");
}

TEST_F(CertificateVariables, HaveNothingReadAgain) {
  for (const char* const place : {"--unix", "--tls"}) {
    if (place == std::string("--tls")) run_tool({"token", "new", "own"});
    tool_server server = served({place, file("notes.txt")});
    server.process().send_signal(SIGHUP);
    EXPECT_EQ(server.process().wait(patience(std::chrono::seconds(30))), 0);
  }
}

/// In /proc root makes nothing, either.
TEST_F(CertificateVariables, AreNotNeededWhereOptionsNameTheFiles) {
  const changed_variable config("XDG_CONFIG_HOME", "/proc");
  tool_server server({"--cert", servers_.cert.string(), "--key", servers_.key.string(), "--ca",
                      servers_.ca.string(), file("notes.txt")});
  EXPECT_EQ(run_tool(with({"cat", server.url("notes.txt")}, clients_)).out, "text");
}

/// Pipes, agents and copies between servers, for clients that have a certificate and no token.
class CertificateAtWork : public CertificateVariables {
 protected:
  static constexpr const char* rules =
      "allow certificate uri:spiffe://cluster/build agent .ucxio-agent\n"
      "allow certificate uri:spiffe://cluster/build list,read,write,create mine/**\n"
      "allow token own all **\n";

  CertificateAtWork() {
    EXPECT_EQ(run_tool({"token", "new", "own"}).code, 0);
    for (const char* const each : {"store/mine", "store/others", "copies/mine"}) {
      std::filesystem::create_directories(folder_ / each);
    }
    std::ofstream(folder_ / "store/mine/x") << "a text of mine";
    std::ofstream(folder_ / "store/others/x") << "a text of others";
    std::ofstream(folder_ / "rules") << rules;
  }
  /// A server that has a certificate, and this user's tokens.
  tool_server proven(arguments words) const {
    words.insert(words.end(),
                 {"--tls", "--cert", servers_.cert.string(), "--key", servers_.key.string(), "--ca",
                  servers_.ca.string(), "--crl", servers_.crl.string()});
    return tool_server(words);
  }
  command_result run_with_certificate(const arguments& words) const {
    return run_tool(with(words, clients_));
  }
  /// Sends this text to a pipe. `options` say by what.
  static command_result send(const std::string& pipe, const arguments& options) {
    std::string line = "printf 'one two' | " + tool_program() + " pipe send --timeout 20 " + pipe;
    for (const std::string& each : options) line += ' ' + each;
    return command("/bin/sh", {"-c", line}).finish();
  }
};

TEST_F(CertificateAtWork, LetsEndsOfAPipeMeet) {
  tool_server server = proven({"--pipes"});
  const std::string pipe = server.url("pipe");
  for (const bool by_token : {false, true}) {
    command reads(tool_program(), with({"pipe", "receive", "--timeout", "20", pipe}, clients_));
    const command_result sent = send(pipe, by_token ? arguments{} : with({}, clients_));
    EXPECT_EQ(sent.code, 0) << sent.err;
    const command_result came = reads.finish();
    EXPECT_EQ(came.code, 0) << came.err;
    EXPECT_EQ(came.out, "one two") << by_token;
  }
  const command_result stranger = send(pipe, {"--token-file", file("none")});
  EXPECT_EQ(stranger.code, 5) << stranger.err;
  authority_.revoke(clients_);
  authority_.write_crl();
  const tool_server later = proven({"--pipes"});
  const command_result revoked = send(later.url("pipe"), with({}, clients_));
  EXPECT_EQ(revoked.code, 5) << revoked.err;
}

TEST_F(CertificateAtWork, CallsTheAgent) {
  for (const bool has_rules : {false, true}) {
    arguments words{"--agent", "--writable", "--store", file("store")};
    if (has_rules) words.insert(words.end(), {"--rules", file("rules")});
    tool_server server = proven(words);
    const command_result fetched =
        run_with_certificate({"cp", "--compress", "zstd", server.url("mine/x"), file("fetched")});
    EXPECT_EQ(fetched.code, 0) << fetched.err;
    EXPECT_EQ(content_of(folder_ / "fetched"), "a text of mine");
    std::filesystem::remove(folder_ / "fetched");
    const command_result put =
        run_with_certificate({"cp", "--compress", "zstd", file("notes.txt"), server.url("mine/y")});
    EXPECT_EQ(put.code, 0) << put.err;
    EXPECT_EQ(content_of(folder_ / "store/mine/y"), "text");
    const command_result foreign =
        run_with_certificate({"cp", "--compress", "zstd", server.url("others/x"), file("fetched")});
    EXPECT_EQ(foreign.code == 0, !has_rules) << foreign.err;
    EXPECT_EQ(std::filesystem::exists(folder_ / "fetched"), !has_rules);
    std::filesystem::remove(folder_ / "fetched");
  }
}

TEST_F(CertificateAtWork, CopiesFromServerToServer) {
  for (const bool has_rules : {false, true}) {
    const arguments more = has_rules ? arguments{"--rules", file("rules")} : arguments{};
    arguments of_source{"--store", file("store")};
    arguments of_target{"--store", file("copies"), "--writable", "--fetch-from", "127.0.0.1"};
    of_source.insert(of_source.end(), more.begin(), more.end());
    of_target.insert(of_target.end(), more.begin(), more.end());
    tool_server source = proven(of_source);
    tool_server target = proven(of_target);
    const auto copy = [&](const std::string& from, const std::string& to) {
      return run_with_certificate({"cp", "--direct", source.url(from), target.url(to)});
    };
    const command_result copied = copy("mine/x", "mine/x");
    EXPECT_EQ(copied.code, 0) << copied.err;
    EXPECT_EQ(content_of(folder_ / "copies/mine/x"), "a text of mine");
    const std::string made = has_rules ? "mine/by_rules" : "mine/without";
    const command_result foreign = copy("others/x", made);
    EXPECT_EQ(foreign.code == 0, !has_rules) << foreign.err;
    EXPECT_EQ(std::filesystem::exists(folder_ / ("copies/" + made)), !has_rules);
    // One that is known at neither server.
    expect_failure(run_tool({"cp", "--direct", "--token-file", file("none"), source.url("mine/x"),
                             target.url("mine/z")}),
                   5, "there is no token");
  }
}

}  // namespace
}  // namespace ucx::test
