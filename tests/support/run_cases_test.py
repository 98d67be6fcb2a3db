#!/usr/bin/env python3
"""Tests run_cases.py and report_cases.py with a program that behaves like GoogleTest's, and badly where it is told to."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
# Its cases are named by what they do.
PROGRAM = """#!/usr/bin/env python3
import os, signal, sys, time
cases = CASES
flags = sys.argv[1:]
if flags[0] == "--gtest_list_tests":
    suite = ""
    for case in cases:
        if case.split(".")[0] != suite:
            suite = case.split(".")[0]
            print(suite + ".")
        print("  " + case.split(".")[1])
    sys.exit(0)
lines = open(flags[0].split("=", 1)[1]).read().splitlines()
chosen = lines[0].split("=", 1)[1].split(":")
failed = False
for case in cases:
    if case not in chosen: continue
    print(f"[ RUN      ] {case}", flush=True)
    does = case.split(".")[1].split("/")[0]
    if does == "Crashes": os.kill(os.getpid(), signal.SIGSEGV)
    if does == "Hangs": time.sleep(60)
    if does == "Leaves": os._exit(0)
    if does == "LeavesAChild" and os.fork() == 0: time.sleep(30)
    if does == "Skips": print("a.cpp:1: Skipped\\nno such device\\n")
    if does == "Fails": print("a.cpp:2: Failure\\nthis is why")
    word = {"Skips": " SKIPPED", "Fails": " FAILED "}.get(does, "      OK")
    failed = failed or does == "Fails"
    print(f"[ {word} ] {case} (3 ms)", flush=True)
if "Outside.Leaks" in chosen: sys.exit(23)
sys.exit(1 if failed else 0)
"""


class RunCases(unittest.TestCase):
    """Each of its tests writes a program and runs its cases."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.results = pathlib.Path(self.folder.name) / "results"

    def run_cases(self, cases, *options, **environment):
        """Returns the exit status, what was printed, and how each case ended."""
        program = pathlib.Path(self.folder.name) / "program"
        program.write_text(PROGRAM.replace("CASES", repr(cases)))
        program.chmod(0o755)
        self.results.mkdir(exist_ok=True)
        done = subprocess.run([HERE / "run_cases.py", "--label", "program", "--results", self.results / "program",
                               *options, program], env=dict(os.environ, UCXIO_CASES="", **environment),
                              capture_output=True, text=True, timeout=100, check=False)
        ended = {}
        if (self.results / "program").exists():
            for line in (self.results / "program").read_text().splitlines():
                status, _, case, reason = line.split("\t")
                ended[case] = (status, reason) if reason else status
        return done.returncode, done.stdout, ended

    def test_all_pass(self):
        """Two cases, one process, success."""
        status, said, ended = self.run_cases(["A.Is", "B.Is"])
        self.assertEqual((status, ended), (0, {"A.Is": "passed", "B.Is": "passed"}))
        self.assertIn("2 cases, 2 passed, 0 skipped, 0 failed, 0 not run", said)

    def test_failure_is_shown(self):
        """What a failed case printed is shown; what others printed is not."""
        status, said, ended = self.run_cases(["A.Is", "A.Fails", "B.Is"])
        self.assertEqual((status, ended["A.Fails"], ended["B.Is"]), (1, "failed", "passed"))
        self.assertIn("this is why", said)
        self.assertIn("FAILED: A.Fails", said)
        self.assertNotIn("] A.Is", said)

    def test_skip_has_a_reason(self):
        """A skip is none of the failures, and says why."""
        status, _, ended = self.run_cases(["A.Skips"])
        self.assertEqual((status, ended), (0, {"A.Skips": ("skipped", "no such device")}))

    def test_crash_names_its_case(self):
        """The cases behind a crash run all the same."""
        status, said, ended = self.run_cases(["A.Is", "A.Crashes", "A.Is/0", "B.Is"])
        self.assertEqual(status, 1)
        self.assertEqual(ended, {"A.Is": "passed", "A.Crashes": "failed", "A.Is/0": "passed", "B.Is": "passed"})
        self.assertIn("signal 11", said)

    def test_hang_names_its_case(self):
        """A case that takes too long is ended, and those behind it run."""
        status, said, ended = self.run_cases(["A.Hangs", "B.Is"], "--limit", "1")
        self.assertEqual((status, ended), (1, {"A.Hangs": "failed", "B.Is": "passed"}))
        self.assertIn("took longer than 1.0 s", said)

    def test_end_in_the_middle_is_a_failure(self):
        """A program that ends well within a case did not pass it."""
        status, _, ended = self.run_cases(["A.Leaves", "B.Is"])
        self.assertEqual((status, ended), (1, {"A.Leaves": "failed", "B.Is": "passed"}))

    def test_child_that_is_left_behind(self):
        """A process that a case left behind holds up nobody."""
        status, _, ended = self.run_cases(["A.LeavesAChild"])
        self.assertEqual((status, ended), (0, {"A.LeavesAChild": "passed"}))

    def test_end_of_the_program_counts(self):
        """What is found when the program ends, such as a leak, is a failure of its own."""
        status, said, ended = self.run_cases(["Outside.Leaks"])
        self.assertEqual((status, ended["program.outside_of_all_cases"]), (1, "failed"))
        self.assertIn("exit status 23", said)

    def test_parts_are_the_whole(self):
        """Each case is in one part."""
        cases = [f"A.Is/{number}" for number in range(7)]
        found = [case for part in range(3) for case in self.run_cases(cases, "--part", f"{part}/3")[2]]
        self.assertEqual(sorted(found), cases)

    def test_instances_are_spread(self):
        """Of many instances some are run, of a case without any that one."""
        cases = ["A.Is", "A.Few/0", "A.Few/1"] + [f"A.Many/{number}" for number in range(40)]
        _, _, ended = self.run_cases(cases, "--instances", "4")
        many = sorted(int(case.split("/")[1]) for case in ended if "Many" in case)
        self.assertEqual((len(ended), len(many)), (7, 4))
        self.assertTrue({"A.Is", "A.Few/0", "A.Few/1"} <= set(ended))
        self.assertEqual({(after - before) % 40 for before, after in zip(many, many[1:] + many[:1])}, {10})

    def test_no_case_is_a_failure(self):
        """A part without a case is a mistake."""
        self.assertEqual(self.run_cases([])[0], 1)

    def test_progress(self):
        """Each case that ends is a letter."""
        progress = pathlib.Path(self.folder.name) / "progress"
        self.run_cases(["A.Is", "A.Skips", "A.Fails"], UCXIO_PROGRESS=str(progress))
        self.assertEqual(progress.read_text(), "psf")

    def test_report(self):
        """The report fails where cases are missing."""
        self.run_cases(["A.Is", "A.Skips"])
        for asked, status in ((2, 0), (3, 1)):
            done = subprocess.run([HERE / "report_cases.py", "--of", str(asked), self.results], capture_output=True,
                                  text=True, check=False)
            self.assertEqual(done.returncode, status)
            self.assertIn("2 cases: 1 passed, 1 skipped, 0 failed", done.stdout)
            self.assertEqual("1 of 3 cases did NOT RUN" in done.stdout, status == 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
