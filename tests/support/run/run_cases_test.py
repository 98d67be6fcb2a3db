#!/usr/bin/env python3
"""Tests run_cases.py and report_cases.py with a program that behaves like GoogleTest's, and badly where it is told to."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
# Its cases are named by what they do.
PROGRAM = """#!/usr/bin/env python3
import os, signal, sys, time
cases = CASES
flags = sys.argv[1:]
if flags[0] == "--gtest_list_tests":
    suite, pattern = "", flags[1].split("=", 1)[1]
    for case in cases:
        if pattern not in ("*", case): continue
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
    if does == "ClosesItsOutput": os.close(1); os.close(2); time.sleep(60)
    if does == "IgnoresNothing" and signal.getsignal(signal.SIGINT) == signal.SIG_IGN: does = "Fails"
    if does == "Skips": print("a.cpp:1: Skipped\\nno such device\\n")
    if does == "Fails": print("a.cpp:2: Failure\\nthis is why")
    word = {"Skips": " SKIPPED", "Fails": " FAILED "}.get(does, "      OK")
    failed = failed or does == "Fails"
    print(f"[ {word} ] {case} (3 ms)", flush=True)
    if does == "LeavesBehind": os._exit(0)
print(f"[==========] {len(chosen)} tests from 1 test suite ran. (3 ms total)")
if "Outside.Leaks" in chosen: sys.exit(23)
sys.exit(1 if failed else 0)
"""


def command_of(pid):
    """Returns the command line of a process; nothing if it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


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
                               *options, program], env=dict(os.environ, UCXIO_CASES="", UCXIO_PROGRESS="", UCXIO_PASSED="") | environment,
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

    def test_end_between_cases_is_a_failure(self):
        """Of a program that ends well behind a case it is not known what its end would have told."""
        status, _, ended = self.run_cases(["A.LeavesBehind", "B.Is"])
        self.assertEqual((status, ended), (1, {"A.LeavesBehind": "passed", "program.outside_of_all_cases": "failed",
                                               "B.Is": "passed"}))

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

    def test_hang_without_output(self):
        """A program that closes its output is bounded, too."""
        status, said, ended = self.run_cases(["A.ClosesItsOutput", "B.Is"], "--limit", "1")
        self.assertEqual((status, ended), (1, {"A.ClosesItsOutput": "failed", "B.Is": "passed"}))
        self.assertIn("took longer than 1.0 s", said)

    def test_signals_of_a_background_job(self):
        """What a shell has its background jobs ignore, the program does not."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        self.assertEqual(self.run_cases(["A.IgnoresNothing"])[2], {"A.IgnoresNothing": "passed"})

    def test_program_ends_with_its_runner(self):
        """Whoever ends run_cases.py ends the program."""
        program = pathlib.Path(self.folder.name) / "program"
        program.write_text(PROGRAM.replace("CASES", repr(["A.Hangs"])))
        program.chmod(0o755)
        for how in (signal.SIGTERM, signal.SIGKILL):
            with subprocess.Popen([HERE / "run_cases.py", program], stdout=subprocess.DEVNULL) as runner:
                children = pathlib.Path(f"/proc/{runner.pid}/task/{runner.pid}/children")
                # The listing first, which ends by itself.
                self.wait_for(lambda: any("flagfile" in command_of(child) for child in children.read_text().split()))
                child = children.read_text().split()[0]
                runner.send_signal(how)
                runner.wait()
            self.wait_for(lambda child=child: "flagfile" not in command_of(child))

    def wait_for(self, condition):
        """Waits until it is so, for a bounded time."""
        for _ in range(200):
            if condition():
                return
            time.sleep(0.05)
        self.fail("it did not come to that")

    def test_instances_are_spread(self):
        """Of many instances some are run, others for the next case; of a case without any, that one."""
        cases = ["A.Is", "A.Few/0", "A.Few/1"] + [f"A.{case}/{at}" for case in ("Many", "More") for at in range(40)]
        _, _, ended = self.run_cases(cases, "--instances", "4")
        self.assertTrue({"A.Is", "A.Few/0", "A.Few/1"} <= set(ended))
        many, more = ({int(case.split("/")[1]) for case in ended if name in case} for name in ("Many", "More"))
        self.assertEqual((len(many), len(more), many & more), (4, 4, set()))

    def test_instances_have_every_transport(self):
        """Each transport that the parameters name is run once."""
        cases = [f"P/A.Is/{over}_reader_{mode}" for over in ("tcp_by_address", "mapped", "loopback") for mode in range(9)]
        _, _, ended = self.run_cases(cases, "--instances", "1")
        self.assertEqual({case.split("/")[2].rsplit("_", 2)[0] for case in ended}, {"tcp_by_address", "mapped", "loopback"})
        self.assertEqual(len(ended), 3)

    def test_chosen_by_environment(self):
        """$UCXIO_CASES leaves some of the cases; of a part that may be none."""
        self.assertEqual(self.run_cases(["A.Is", "B.Is"], UCXIO_CASES="B.Is")[2], {"B.Is": "passed"})
        self.assertEqual(self.run_cases(["A.Is"], UCXIO_CASES="B.Is")[::2], (0, {}))

    def test_names_of_a_file(self):
        """--names leaves those of a file, --first-failure ends behind the first that fails."""
        names = pathlib.Path(self.folder.name) / "names"
        names.write_text("A.Fails\nB.Is\n")
        self.assertEqual(self.run_cases(["A.Is", "A.Fails", "B.Is"], "--names", names)[2],
                         {"A.Fails": "failed", "B.Is": "passed"})
        self.assertEqual(self.run_cases(["A.Fails/0", "A.Fails/1"], "--first-failure")[0], 1)

    def test_no_case_is_a_failure(self):
        """A part without a case is a mistake."""
        self.assertEqual(self.run_cases([])[0], 1)

    def test_progress(self):
        """Each case that ends is a letter."""
        progress = pathlib.Path(self.folder.name) / "progress"
        self.run_cases(["A.Is", "A.Skips", "A.Fails"], UCXIO_PROGRESS=str(progress))
        self.assertEqual(progress.read_text(), "psf")

    def test_unchanged_is_not_run(self):
        """What passed counts without being run again, until the program, the options or the environment change."""
        kept, progress = pathlib.Path(self.folder.name) / "kept", pathlib.Path(self.folder.name) / "progress"
        options = {"UCXIO_PASSED": str(kept), "UCXIO_PROGRESS": str(progress)}
        passed = {"A.Is": "passed", "A.Skips": ("skipped", "no such device")}

        def said_unchanged(cases, *chosen, **environment):
            progress.write_text("")
            (self.results / "program").unlink(missing_ok=True)
            status, said, ended = self.run_cases(cases, "--alone", *chosen, **(options | environment))
            self.assertEqual((status, len(progress.read_text())), (0, len(ended)))
            return ended == passed and "unchanged since they passed" in said

        self.assertFalse(said_unchanged(["A.Is", "A.Skips"]))
        self.assertTrue(said_unchanged(["A.Is", "A.Skips"]))
        self.assertFalse(said_unchanged(["A.Is", "A.Skips"], "--limit", "10"))
        self.assertFalse(said_unchanged(["A.Is", "A.Skips"], UCX_TLS="tcp"))
        self.assertFalse(said_unchanged(["A.Is", "A.Skips", "A.Too"]))
        self.assertTrue(said_unchanged(["A.Is", "A.Skips"]))

    def test_named_files_are_inputs(self):
        """A file that a variable names may change."""
        kept = pathlib.Path(self.folder.name) / "kept"
        named = pathlib.Path(self.folder.name) / "driver"
        outcomes = []
        for content in ("one", "two", "one"):
            named.write_text(content)
            outcomes.append(self.run_cases(["A.Is"], "--alone", UCXIO_PASSED=str(kept), UCXIO_DRIVER=str(named))[1])
        self.assertEqual(["unchanged" in said for said in outcomes], [False, False, True])

    def test_what_failed_is_run_again(self):
        """A failure is not kept."""
        kept = pathlib.Path(self.folder.name) / "kept"
        for _ in range(2):
            status, said, _ = self.run_cases(["A.Is", "A.Fails"], "--alone", UCXIO_PASSED=str(kept))
            self.assertEqual(status, 1)
            self.assertIn("this is why", said)

    def report(self, *options, **environment):
        """Returns the exit status of report_cases.py, and what it printed."""
        done = subprocess.run([HERE / "report_cases.py", *options, self.results], env=os.environ | {"UCXIO_EXPECTED_SKIPS": ""} | environment,
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    def test_report(self):
        """The report fails where cases are missing, and names them."""
        self.run_cases(["A.Is", "A.Skips"])
        expected = pathlib.Path(self.folder.name) / "expected"
        for more, status in (("", 0), ("program\tA.Gone\n", 1)):
            expected.write_text("program\tA.Is\nprogram\tA.Skips\n" + more)
            found, said = self.report("--of", expected)
            self.assertEqual(found, status, said)
            self.assertIn("2 cases: 1 passed, 1 skipped, 0 failed", said)
            self.assertEqual("did NOT RUN: program: A.Gone" in said, status == 1)

    def test_skips_that_nobody_expects(self):
        """A reason that is not in the list fails the report."""
        self.run_cases(["A.Skips"])
        expected = pathlib.Path(self.folder.name) / "skips"
        for pattern, status in (("no such .*", 0), ("no zsh", 1)):
            expected.write_text("# why\n" + pattern + "\n")
            found, said = self.report(UCXIO_EXPECTED_SKIPS=str(expected))
            self.assertEqual(found, status, said)
            self.assertEqual("did NOT RUN: A.Skips" in said, status == 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
