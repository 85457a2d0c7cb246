# SPDX-License-Identifier: GPL-2.0
"""The command line of scripts/lab, and what it refuses."""

import contextlib
import io
import unittest

from irdma_env.errors import EnvError
from irdma_lab.cli import parse
from irdma_lab.guest import seats
from irdma_lab.options import Options


class Parse(unittest.TestCase):
    def test_run(self):
        action, options, verbose = parse(
            ["run", "--guests", "2", "--driver", "irdma", "-v", "--mem", "1536M",
             "--allow-warn", "x", "--", "sh", "-c", "echo -- $IP"])
        self.assertEqual(action, "run")
        self.assertEqual(options.command, ["sh", "-c", "echo -- $IP"])
        self.assertEqual(options.drivers(), ["irdma", "irdma"])
        self.assertEqual(options.mem_mib(), 1536)
        self.assertTrue(verbose)

    def test_options_of_the_command_stay_with_it(self):
        options = parse(["run", "--", "ping", "--", "--guests"])[1]
        self.assertEqual(options.command, ["ping", "--", "--guests"])

    def test_one_driver_each_says_how_many_guests(self):
        options = parse(["run", "--driver", "irdma,rxe", "--", "true"])[1]
        self.assertEqual((options.guests, options.drivers()), (2, ["irdma", "rxe"]))

    def test_wrong_usage_ends_with_status_2(self):
        for argv in (["run"], ["run", "true"], ["run", "--nonsense", "--", "true"], [], ["fly"],
                     ["shell", "--", "true"], ["run", "--guests", "x", "--", "true"]):
            with self.assertRaises(SystemExit) as caught, \
                    contextlib.redirect_stderr(io.StringIO()):
                parse(argv)
            self.assertEqual(caught.exception.code, 2, argv)

    def test_what_cannot_work_is_refused(self):
        for extra in (dict(guests=0), dict(guests=17), dict(driver="mlx5"),
                      dict(driver="irdma,rxe", guests=3), dict(cpus=1),
                      dict(driver="none", cpus=0), dict(cpus=17), dict(mem="1T"),
                      dict(mem="64M"), dict(timeout=0), dict(allow_warn=["("])):
            with self.assertRaises(EnvError, msg=str(extra)):
                Options(**{"command": ["true"], **extra}).check()

    def test_debug_kernel_has_more_of_all(self):
        debug, stock = (parse(["run", "--kernel", k, "--", "true"])[1]
                        for k in ("debug", "stock"))
        self.assertGreater(debug.mem_mib(), stock.mem_mib())
        self.assertGreater(debug.timeout, stock.timeout)
        asked = parse(["run", "--kernel", "debug", "--mem", "3G", "--timeout", "9", "--",
                       "true"])[1]
        self.assertEqual((asked.mem_mib(), asked.timeout), (3072, 9))

    def test_debug_kernel_is_not_for_stock_irdma(self):
        Options(command=["true"], kernel="debug", driver="irdma_rs,rxe", guests=2).check()
        with self.assertRaisesRegex(EnvError, "stock irdma"):
            Options(command=["true"], kernel="debug", driver="irdma_rs,irdma",
                    guests=2).check()

    def test_leaks_need_a_kernel_that_tells(self):
        Options(command=["true"], kernel="debug", leaks=True).check()
        with self.assertRaisesRegex(EnvError, "--leaks"):
            Options(command=["true"], leaks=True).check()

    def test_one_processor_will_do_without_a_virtual_e810(self):
        Options(command=["true"], cpus=1, driver="rxe").check()


class Seats(unittest.TestCase):
    def test_kinds_are_numbered_apart(self):
        placed = seats(["irdma", "rxe", "irdma_rs", "none"])
        self.assertEqual([s.device_socket for s in placed],
                         ["nic0.sock", "port0.sock", "nic1.sock", "port1.sock"])
        self.assertEqual([s.mac for s in placed],
                         ["02:e8:10:00:00:01", "02:e8:20:00:00:01",
                          "02:e8:10:00:00:02", "02:e8:20:00:00:02"])
        self.assertEqual(placed[3].ip, "10.99.0.4")
