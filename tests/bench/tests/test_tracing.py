# SPDX-License-Identifier: GPL-2.0
"""Memory is read out of trace events as the kernel prints them."""

import unittest

from irdma_bench.tracing import Seen

ALLOC = ("  bench-7 [000] ..... 9.1: dma_alloc: 0000:01:00.0 dir=BIDIRECTIONAL "
         "dma_addr=1000 size=%d virt_addr=0000 flags=GFP_KERNEL attrs=")
FREE = ("  bench-7 [000] ..... 9.2: dma_free: 0000:01:00.0 dir=BIDIRECTIONAL "
        "dma_addr=1000 size=%d virt_addr=0000 attrs=")
KMALLOC = ("  bench-7 [000] ..... 9.3: kmalloc: call_site=%s ptr=%s bytes_req=200 "
           "bytes_alloc=256 gfp_flags=GFP_KERNEL node=-1 accounted=false")
KFREE = "  bench-7 [000] ..... 9.4: kfree: call_site=f+0x1/0x2 ptr=%s"


def seen(*lines) -> Seen:
    result, live = Seen(), {}
    for line in lines:
        result.add(line, live)
    for size, site in live.values():
        result.slab[site] = result.slab.get(site, 0) + size
    return result


class TracingTest(unittest.TestCase):
    def test_coherent_memory_counts_in_whole_pages(self):
        found = seen(ALLOC % 64, ALLOC % 4096, ALLOC % 4097)
        self.assertEqual(found.coherent_bytes, 64 + 4096 + 4097)
        self.assertEqual(found.coherent_pages_bytes, 4096 + 4096 + 8192)
        self.assertEqual(found.coherent_allocs, 3)

    def test_what_is_given_back_cancels_what_was_taken(self):
        found = seen(ALLOC % 64, FREE % 64)
        self.assertEqual((found.coherent_bytes, found.coherent_pages_bytes), (0, 0))
        self.assertEqual(seen(FREE % 64).coherent_pages_bytes, -4096)

    def test_slab_memory_that_stays_is_known_by_who_took_it(self):
        found = seen(KMALLOC % ("a+0x1/0x2", "01"), KMALLOC % ("b+0x1/0x2", "02"),
                     KMALLOC % ("b+0x1/0x2", "03"), KFREE % "02", KFREE % "99")
        self.assertEqual(found.slab, {"a+0x1/0x2": 256, "b+0x1/0x2": 256})

    def test_other_lines_are_nothing(self):
        self.assertEqual(seen("# tracer: nop", "CPU:0 [LOST 3 EVENTS]", ""), Seen())
