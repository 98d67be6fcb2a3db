#!/usr/bin/env python3
"""Tests run.py: what it says of pages that are wrong.   tests/documents/run_test.py BUILD_DIR COMPILER"""
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

RUN = pathlib.Path(__file__).resolve().parent / "run.py"
BUILD, COMPILER = "", "c++"


class Documents(unittest.TestCase):
    def setUp(self):
        self.made = tempfile.TemporaryDirectory()
        self.addCleanup(self.made.cleanup)
        self.folder = pathlib.Path(self.made.name)
        self.page = self.folder / "page.md"

    def run_page(self, what, text, *options):
        """Returns the exit code, and all that was said of a page."""
        self.page.write_text(text, encoding="utf-8")
        done = subprocess.run([RUN, what, BUILD, COMPILER, *options, "--pages", self.page], text=True, capture_output=True,
                              timeout=120)
        return done.returncode, done.stdout + done.stderr

    def type_page(self, text, *options):
        code, told = self.run_page("type", text, *options)
        if code == 77:
            self.skipTest(told.strip())
        return code, told

    def test_page_that_is_right_passes(self):
        page = ("# Title\n\n```sh\necho a >b\n```\n\n```cpp file=c.cpp\nint main() {}\n```\n\n"
                "<!-- sh\ntest -f b && test -f c.cpp\n-->\n")
        code, told = self.type_page(page)
        self.assertEqual(code, 0, told)
        self.assertEqual(self.run_page("compile", page)[0], 0)

    def test_failing_command_is_told_with_page_and_line(self):
        code, told = self.type_page("# Title\n\n```sh\ntrue\nls /nothing-of-this-name\necho not reached\n```\n")
        self.assertEqual(code, 1)
        self.assertIn(f"{self.page}:5: ls /nothing-of-this-name", told)
        self.assertNotIn("\nnot reached", told)

    def test_failing_command_of_a_pipeline_is_noticed(self):
        code, told = self.type_page("```sh\nfalse | cat\n```\n")
        self.assertEqual(code, 1)
        self.assertIn(f"{self.page}:2", told)

    def test_commands_run_in_the_order_of_the_page_in_one_shell(self):
        code, told = self.type_page("```sh\nword=seen\ncd /tmp\n```\n\ntext\n\n"
                                    "```sh\ntest $word = seen && test $PWD = /tmp\n```\n")
        self.assertEqual(code, 0, told)

    def test_block_without_language_fails(self):
        for run in (lambda text: self.run_page("compile", text), self.type_page):
            code, told = run("text\n\n```\nls\n```\n")
            self.assertEqual(code, 1)
            self.assertIn(f"{self.page}:4: a fence of the unknown language", told)

    def test_indented_block_fails(self):
        code, told = self.run_page("compile", "text\n\n    ls\n")
        self.assertEqual(code, 1)
        self.assertIn(f"{self.page}:3: an indented block", told)

    def test_block_without_end_fails(self):
        code, told = self.run_page("compile", "text\n\n```sh\nls\n")
        self.assertEqual(code, 1)
        self.assertIn(f"{self.page}:3: a block without an end", told)

    def test_misspelt_word_of_a_fence_fails(self):
        code, told = self.run_page("compile", "```sh not_run=\"needs a GPU\"\nls\n```\n")
        self.assertEqual(code, 1)
        self.assertIn(f"{self.page}:2: a fence with the unknown word \"not_run\"", told)

    def test_reason_is_needed(self):
        code, told = self.run_page("compile", "```sh not-run\nls\n```\n")
        self.assertEqual(code, 1)
        self.assertIn("not-run without a reason", told)

    def test_fragment_that_does_not_compile_is_told_with_its_line(self):
        code, told = self.run_page("compile", "text\n\n```cpp\nint a = 1;\nucx::no_such_name b;\n```\n")
        self.assertEqual(code, 1)
        self.assertRegex(told, re.escape(str(self.page)) + ":5:.*no_such_name")

    def test_program_that_does_not_compile_is_told_with_its_line(self):
        code, told = self.run_page("compile", "```cpp\n#include <string>\nint main() {\n  wrong;\n}\n```\n")
        self.assertEqual(code, 1)
        self.assertRegex(told, re.escape(str(self.page)) + ":4:.*wrong")

    def test_fragments_have_what_a_hidden_comment_declares(self):
        page = "```cpp\nuse(1);\n```\n\n<!-- code\nvoid use(int);\n-->\n"
        self.assertEqual(self.run_page("compile", page)[0], 0)
        self.assertEqual(self.run_page("compile", page.replace("code", "text"))[0], 1)

    def test_json_is_read(self):
        self.assertEqual(self.run_page("compile", "```json\n{\"a\": 1}\n```\n")[0], 0)
        code, told = self.run_page("compile", "```json\n{\"a\": }\n```\n")
        self.assertEqual(code, 1)
        self.assertIn(f"{self.page}:2", told)

    def test_program_that_is_to_run_must_end_with_0(self):
        code, told = self.type_page("```cpp run\n#include <cstdlib>\nint main() { std::exit(3); }\n```\n")
        self.assertEqual(code, 1)
        self.assertIn(f"{self.page}:2", told)

    def test_hanging_command_ends_at_the_bound(self):
        began = time.monotonic()
        code, told = self.type_page("```sh\necho before\nsleep 1000\n```\n", "--seconds", "10")
        self.assertEqual(code, 1)
        self.assertIn("not done after 10 s", told)
        self.assertIn("before", told)
        self.assertLess(time.monotonic() - began, 90)

    def test_what_is_left_running_is_ended(self):
        # Also what leaves the page's session, and a terminal's commands.
        alive = self.folder / "alive"
        writes = f"while true; do date +%N >{alive}; sleep 0.05; done"
        for leaves in (f"```sh\nsetsid bash -c '{writes}' &\n```\n", f"```sh terminal\n{writes}\n```\n"):
            alive.unlink(missing_ok=True)
            page = leaves + f"\n```sh\nwait_until test -s {alive}\n```\n"
            code, told = self.type_page(page, "--see", str(self.folder))
            self.assertEqual(code, 0, told)
            last = alive.read_text()
            time.sleep(1)
            self.assertEqual(alive.read_text(), last)

    def test_terminal_is_waited_for_until_it_says_a_word(self):
        page = ("```sh terminal says=ready\nsleep 0.5\ntouch there\necho ready\nsleep 1000\n```\n\n"
                "```sh\ntest -f there\nclose_terminal\n```\n")
        code, told = self.type_page(page)
        self.assertEqual(code, 0, told)

    def test_pages_see_nothing_of_the_system_s_temporary_files(self):
        code, told = self.type_page(f"```sh\ntest ! -e {self.page}\n"
                                    "touch /tmp/run-test-left /data/a /dev/shm/run-test-left\n```\n")
        self.assertEqual(code, 0, told)
        for folder in ("/tmp", "/dev/shm"):
            self.assertFalse((pathlib.Path(folder) / "run-test-left").exists())


if __name__ == "__main__":
    BUILD, COMPILER = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
