/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a program in a guest talks to the counter of instructions that QEMU may
 * run it under (tests/bench/plugin).
 *
 * A request is an instruction without effect, which the counter knows by its
 * displacement: RDI says what is wanted, RSI, RDX and RCX are arguments, and
 * RAX takes the answer. Without the counter RAX stays as it was, which is 0.
 */
#ifndef GUEST_COUNTER_H
#define GUEST_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

/* Displacement of the instruction `nopl DISPLACEMENT(%rax)`. */
#define COUNTER_MAGIC 0x1bda5eb7

/* Answer to COUNTER_HELLO. */
#define COUNTER_HERE 0x434f554e54455231ULL

/* Ranges of code that can be looked at separately. */
#define COUNTER_RANGES 4
/* Functions that only wait for a lock; see COUNTER_SET_SPIN. */
#define COUNTER_SPINS 8

enum counter_request {
	/* COUNTER_HERE. */
	COUNTER_HELLO = 1,
	/* Range RCX is the addresses from RSI up to RDX, which is not in it. */
	COUNTER_SET_RANGE,
	/*
	 * The same for functions that spin. How long they do depends on the machine
	 * under the guest, so their instructions are not work.
	 */
	COUNTER_SET_SPIN,
	/*
	 * Instructions of all vCPUs: all there are, the kernel's, those of range RSI,
	 * those of functions that spin.
	 */
	COUNTER_ALL,
	COUNTER_KERNEL,
	COUNTER_IN_RANGE,
	COUNTER_SPINNING,
	/* Forget the longest times with interrupts off. */
	COUNTER_OFF_RESET,
	/*
	 * The longest time with interrupts off, in instructions without those of
	 * functions that spin, in which code of
	 * range RSI ran: RDX 0 if it began with an instruction (a lock), 1 if with
	 * an interrupt. And the addresses where that time began and ended.
	 */
	COUNTER_OFF_LONGEST,
	COUNTER_OFF_WHERE,
	COUNTER_OFF_UNTIL,
	/* Start of a profile, and its end: RSI is the number it is written under. */
	COUNTER_PROFILE_START,
	COUNTER_PROFILE_WRITE,
};

static inline uint64_t counter_ask(enum counter_request request, uint64_t first,
				   uint64_t second, uint64_t third)
{
	uint64_t answer = 0;

	asm volatile(".byte 0x0f, 0x1f, 0x80\n\t.long %c1"
		     : "+a" (answer)
		     : "i" (COUNTER_MAGIC), "D" ((uint64_t)request), "S" (first), "d" (second),
		       "c" (third)
		     : "memory");
	return answer;
}

/* Whether there is a counter. */
static inline bool counter_present(void)
{
	return counter_ask(COUNTER_HELLO, 0, 0, 0) == COUNTER_HERE;
}

#endif
