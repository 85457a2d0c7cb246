# SPDX-License-Identifier: GPL-2.0
"""The judge of kernel logs sees what is wrong and nothing else."""

import re
import unittest

from irdma_lab import klog

BAD = [
    "[   12.3] WARNING: CPU: 1 PID: 77 at drivers/net/x.c:12 f+0x1/0x2 [ice]",
    "[   12.3] BUG: kernel NULL pointer dereference, address: 0000000000000010",
    "[   12.3] BUG: KASAN: slab-use-after-free in irdma_x+0x1/0x2",
    "[   12.3] Oops: general protection fault, probably for non-canonical address",
    "[   12.3] Kernel panic - not syncing: Fatal exception",
    "[   12.3] INFO: task rmmod:312 blocked for more than 120 seconds.",
    "[   12.3] watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [kworker/0:1]",
    "[   12.3] rcu: INFO: rcu_preempt self-detected stall on CPU",
    "[   12.3] kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "unreferenced object 0xffff888003a6c000 (size 192):",
    "[   12.3] UBSAN: shift-out-of-bounds in x.c:3:4",
    "[   12.3] refcount_t: underflow; use-after-free.",
    "[   12.3] list_del corruption. prev->next should be x, but was y",
    "[   12.3] DMA-API: ice 0000:01:00.0: device driver has pending DMA allocations",
    "[   12.3] ODEBUG: free active (active state 0) object: ffff8880 object type: timer_list",
    "[   12.3] ODEBUG: Out of memory. ODEBUG disabled",
    "[   12.3] BUG: MAX_LOCKDEP_ENTRIES too low!",
    "[   12.3] turning off the locking correctness validator.",
    "[   12.3] INFO: lockdep is turned off.",
    "[   12.3] DMA-API: debugging out of memory - disabling",
    "[   12.3] kmemleak: Cannot allocate a kmemleak_object structure",
    "[   12.3] BUG: sleeping function called from invalid context at kernel/locking/mutex.c:1",
    "[   12.3] BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 241s!",
    "[   12.3] WARNING: possible circular locking dependency detected",
    "[   12.3] infiniband irdma0: restrack: leaked 1 QP",
    "[   12.3] modprobe: page allocation failure: order:5, mode:0xcc0",
    "[   12.3] irdma_rs: unknown parameter 'nosuch' ignored",
]

GOOD = [
    "[    0.0] Command line: console=ttyS0 hung_task_panic=0",
    "[    0.1] Spectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on, data leaks"
    " possible via Spectre v2 BHB attacks!",
    "[    1.0] kmemleak: Kernel memory leak detector initialized (mem pool available: 1)",
    "[    1.0] UBSAN: initialized",
    "[    1.0] ODEBUG: selftest passed",
    "[    1.0] kmemleak: Kernel memory leak detector disabled",
    "[    1.0] DMA-API: preallocated 65536 debug entries",
    "[    1.0] DMA-API: debugging enabled by kernel config",
    "[    1.0] kasan: KernelAddressSanitizer initialized (generic)",
    "[    3.0] ice 0000:01:00.0: The DDP package was successfully loaded",
    "[    3.1] debug: BUGS and DEBUG are words of their own",
]


class Scan(unittest.TestCase):
    def test_each_bad_line_is_found(self):
        for line in BAD:
            self.assertEqual(len(klog.scan(line)), 1, line)

    def test_no_good_line_is_found(self):
        self.assertEqual(klog.scan("\n".join(GOOD)), [])

    def test_finding_names_the_line(self):
        finding = klog.scan("fine\r\n" + BAD[0] + "\r\n")[0]
        self.assertEqual((finding.number, finding.line), (2, BAD[0]))

    def test_allowed_warning_takes_its_trace_along(self):
        log = "\n".join([BAD[0], "[   12.3] Call Trace:", "[   12.3]  <TASK>",
                         "[   12.3] ---[ end trace 0000000000000000 ]---"])
        self.assertEqual(len(klog.scan(log)), 2)
        self.assertEqual(klog.scan(log, [re.compile(r"drivers/net/x\.c")]), [])

    def test_a_trace_after_the_allowed_one_still_counts(self):
        log = "\n".join([BAD[0], "Call Trace:", "---[ end trace 0 ]---", "Call Trace:"])
        self.assertEqual(len(klog.scan(log, [re.compile(r"x\.c")])), 1)

    def test_allowed_traces_of_two_processors_may_be_mixed(self):
        mixed = [BAD[0], BAD[0], "Call Trace:", "---[ end trace 0 ]---", "Call Trace:",
                 "---[ end trace 0 ]---"]
        allowed = [re.compile(r"x\.c")]
        self.assertEqual(klog.scan("\n".join(mixed), allowed), [])
        self.assertEqual(len(klog.scan("\n".join([*mixed, "Call Trace:"]), allowed)), 1)

    def test_allowed_lines_without_an_end_mark_do_not_add_up(self):
        log = ["WARNING: allowed"] * 3 + ["Call Trace:", "---[ end trace 0 ]---"]
        allowed = [re.compile("allowed")]
        self.assertEqual(klog.scan("\n".join(log), allowed), [])
        self.assertEqual(len(klog.scan("\n".join([*log, "Call Trace:"]), allowed)), 1)

    def test_missing_log_is_bad(self):
        from pathlib import Path
        self.assertEqual(len(klog.scan_file(Path("/nonexistent/log"))), 1)
