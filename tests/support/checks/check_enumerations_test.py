#!/usr/bin/env python3
"""Plants one difference of each kind that check_enumerations.py looks for in a small tree, and expects it to be found."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("check_enumerations.py")
HEADER, ROWS = "include/ucx/mode.hpp", "docs/conventions.md"
ERRORS, TEST = "docs/reference/errors.md", "tests/unit/api/to_string_test.cpp"
MESSAGES = "src/api/error.cpp"
TREE = {
    HEADER: "enum class mode : std::uint8_t {\n  fast = 1,  ///< Quick, or so.\n  slow,\n};\n"
            "template <>\nstd::string_view detail::enum_name(mode value) noexcept;\n"
            "enum class errc { closed };\nstd::string_view detail::enum_name(errc value) noexcept;\n",
    ROWS: "# Conventions\n\n## Enumerations\n\n| `errc` | See [errors.md](errors.md) |\n| `mode` | `fast`, `slow`; with `fast` first |\n\n## Log\n",
    ERRORS: "# Errors\n\n## All values\n\n| value |\n| `closed` | it was closed, on this side | Open it |\n",
    MESSAGES: 'constexpr meaning meanings[]{\n    {errc::closed,\n     "it was "\n     "closed: by this process", std::errc::io_error},\n};\n',
    TEST: "mode::fast mode::slow errc::closed",
}


class CheckEnumerations(unittest.TestCase):
    def check(self, file=HEADER, old="", new=""):
        """Returns the complaints about the tree in which `file` has `new` instead of `old`."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in TREE.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text.replace(old, new) if name == file else text)
            done = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1 if done.stderr else 0, done.stderr)
        return done.stderr

    def test_accepts_what_agrees(self):
        self.assertEqual(self.check(), "")

    def test_finds_an_enumeration_without_names(self):
        self.assertIn("mode has no names", self.check(HEADER, "enum_name(mode", "enum_name(other"))

    def test_finds_what_the_conventions_lack(self):
        self.assertIn("no row of mode", self.check(ROWS, "| `mode` |", "| mode |"))
        self.assertIn("mode has fast; ", self.check(ROWS, ", `slow`", ""))
        self.assertIn("mode has slow, fast; ", self.check(ROWS, "`fast`, `slow`", "`slow`, `fast`"))

    def test_finds_a_row_of_nothing(self):
        self.assertIn("gone is in no header", self.check(ROWS, "| `mode`", "| `gone` | `one` |\n| `mode`"))

    def test_finds_an_error_that_is_not_described(self):
        self.assertIn("no row of closed", self.check(ERRORS, "| `closed`", "| `open`"))

    def test_finds_an_error_whose_row_has_another_message(self):
        self.assertIn('closed does not begin with "it was closed"', self.check(ERRORS, "it was closed", "it is closed"))
        self.assertIn('closed does not begin with "it was shut"', self.check(MESSAGES, "closed:", "shut:"))
        self.assertIn('closed does not begin with "it was close"', self.check(MESSAGES, "closed:", "close:"))
        self.assertIn("no message of closed", self.check(MESSAGES, "errc::closed", "errc::open"))

    def test_finds_a_name_that_is_not_tested(self):
        self.assertIn("mode::slow is missing", self.check(TEST, "mode::slow", "mode::slower"))


if __name__ == "__main__":
    unittest.main()
