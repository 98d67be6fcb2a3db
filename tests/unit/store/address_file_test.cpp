// Files that tell where a server is, and URLs that lead through them.
#include "store/address_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "support/files/temporary_directory.hpp"
#include "ucx/error.hpp"
#include "ucx/url.hpp"

namespace ucx::test {
namespace {

using detail::address_file;
using detail::server_location;

server_location some_address(char letter = 'a', bool local = false) {
  const std::string bytes(100, letter);
  return {worker_address::from_native(std::as_bytes(std::span(bytes))), local};
}

class AddressFile : public ::testing::Test {
 protected:
  std::unique_ptr<address_file> write(const std::string& name, char letter = 'a') {
    return address_file::write(directory_ / name, some_address(letter)).or_tell(ec_);
  }
  server_location read(const std::string& name) {
    return address_file::read(directory_ / name).or_tell(ec_);
  }

  temporary_directory directory_;
  std::error_code ec_;
};

TEST_F(AddressFile, TellsTheAddressAsLongAsItsServerLives) {
  {
    const auto file = write("job 7");
    ASSERT_TRUE(file) << ec_.message();
    EXPECT_EQ(read("job 7"), some_address());
    EXPECT_FALSE(ec_) << ec_.message();
    struct ::stat about = {};
    ASSERT_EQ(::stat((directory_ / "job 7").c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777U, 0600U);
    const std::filesystem::directory_iterator all(directory_ / "");
    EXPECT_EQ(std::distance(begin(all), end(all)), 1);
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "job 7"));
  read("job 7");
  EXPECT_EQ(ec_, errc::connection_refused);
}

TEST_F(AddressFile, TellsWhichInterfacesAreNeeded) {
  const auto file = address_file::write(directory_ / "address", some_address('a', true)).or_throw();
  EXPECT_EQ(read("address"), some_address('a', true));
  // Words that nobody knows yet mean nothing.
  directory_.make("later", to_string(some_address().address) + " something else\n");
  EXPECT_EQ(read("later"), some_address());
  EXPECT_FALSE(ec_);
}

TEST_F(AddressFile, OfAServerThatIsGoneIsReplaced) {
  auto first = write("address");
  const auto second = write("address", 'b');
  ASSERT_TRUE(second) << ec_.message();
  first.reset();  // it is not its file any more
  EXPECT_EQ(read("address"), some_address('b'));
}

TEST_F(AddressFile, OfAnotherServerIsNotRemoved) {
  auto first = write("address");
  auto second = write("address", 'b');
  second.reset();
  const auto third = write("address", 'c');
  first.reset();
  EXPECT_EQ(read("address"), some_address('c'));
}

TEST_F(AddressFile, ReplacesNoOtherFile) {
  directory_.make("weights", "12345");
  EXPECT_FALSE(write("weights"));
  EXPECT_EQ(ec_, errc::already_exists);
  EXPECT_EQ(content_of(directory_ / "weights"), "12345");
  EXPECT_FALSE(write("none/address"));
  EXPECT_EQ(ec_, errc::no_such_name);
  std::filesystem::create_directory(directory_ / "directory");
  EXPECT_FALSE(write("directory"));
  EXPECT_EQ(ec_, errc::not_supported);
  EXPECT_FALSE(write(std::string(300, 'n')));
  EXPECT_EQ(ec_, errc::bad_name);
}

TEST_F(AddressFile, RefusesWhatIsNoAddress) {
  const auto file = write("address");
  const std::string whole = content_of(directory_ / "address");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    directory_.make("cut", whole.substr(0, length));
    read("cut");
    EXPECT_EQ(ec_, errc::bad_address) << length;
    ec_.clear();
  }
  for (std::size_t at = 0; at + 1 < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = flipped[at] == '0' ? '1' : '0';
    directory_.make("flipped", flipped);
    read("flipped");
    EXPECT_TRUE(ec_ == errc::bad_address || ec_ == errc::version_mismatch) << at;
    ec_.clear();
  }
  directory_.make("huge", std::string(1 << 20, 'a'));
  read("huge");
  EXPECT_EQ(ec_, errc::bad_address);
  ec_.clear();
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  read("pipe");
  EXPECT_EQ(ec_, errc::bad_address);
}

TEST_F(AddressFile, IsFoundOnTheWayThatAUrlSays) {
  const auto file = write("job 7");
  const std::string path = (directory_ / "job 7").string();
  const std::string encoded = (directory_ / "job%207").string();
  const url named("ucx+file://" + encoded + "/a/b%2Fc%20d");
  EXPECT_EQ(named.address_file(), path);
  EXPECT_EQ(named.name(), "a/b/c d");
  EXPECT_EQ(named.host(), "");
  EXPECT_EQ(named.port(), 0);
  EXPECT_FALSE(named.empty());
  EXPECT_EQ(to_string(named), "ucx+file://" + encoded + "/a/b/c%20d");
  EXPECT_EQ(url(to_string(named)), named);
  EXPECT_EQ(named, url::from_address_file(path, "a/b/c d"));
  EXPECT_NE(named, named.server());
  EXPECT_EQ(to_string(named.server()), "ucx+file://" + encoded);
  EXPECT_EQ(url("UCX+File://" + encoded), named.server());
  EXPECT_EQ(url("ucx+file://" + encoded + "/"), named.server());
  EXPECT_EQ(named.server().with_name("a/b/c d"), named);
  EXPECT_EQ(std::hash<url>()(named), std::hash<url>()(url::from_address_file(path, "a/b/c d")));
  EXPECT_NE(std::hash<url>()(named),
            std::hash<url>()(url::from_address_file(path + "x", "a/b/c d")));
}

TEST_F(AddressFile, IsFoundFromTheWorkingDirectoryToo) {
  const auto file = write("address");
  const std::filesystem::path relative =
      std::filesystem::relative(directory_ / "address", std::filesystem::current_path());
  const url found("ucx+file://" + relative.string() + "/name");
  EXPECT_EQ(found.name(), "name");
  EXPECT_TRUE(std::filesystem::path(found.address_file()).is_absolute());
}

TEST_F(AddressFile, IsNotInAUrlWhoseNameCanNotBeOne) {
  const auto file = write("address");
  std::error_code ec;
  const url made("ucx+file://" + (directory_ / "address").string() + "/a%FFb", ec);
  EXPECT_EQ(ec, errc::bad_url);
  EXPECT_TRUE(made.empty()) << to_string(made);
}

TEST_F(AddressFile, UrlsThatLeadNowhereSaySo) {
  const auto refusal = [](const std::string& text) {
    try {
      static_cast<void>(url(text));
    } catch (const error& failed) {
      return std::string(failed.what());
    }
    return std::string();
  };
  std::error_code ec;
  static_cast<void>(url("ucx+file://" + (directory_ / "none/name").string(), ec));
  EXPECT_EQ(ec, errc::connection_refused);
  EXPECT_NE(refusal("ucx+file://" + (directory_ / "none/name").string()).find("no address file"),
            std::string::npos);
  for (const char* text : {"ucx+file:", "ucx+file:/a/b", "ucx+file://", "ucx+file://a?b",
                           "ucx+file://a%2", "ucx+file://a%00b"}) {
    static_cast<void>(url(text, ec));
    EXPECT_EQ(ec, errc::bad_url) << text;
  }
  EXPECT_THROW(url::from_address_file(""), error);
  ec.clear();
  EXPECT_TRUE(url::from_address_file("", {}, ec).empty());
  EXPECT_EQ(ec, errc::bad_url);
  EXPECT_THROW(url::from_address_file("a", std::string(url::max_name_size + 1, 'n')), error);
}

}  // namespace
}  // namespace ucx::test
