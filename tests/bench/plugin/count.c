// SPDX-License-Identifier: GPL-2.0
/*
 * Plugin for QEMU that counts a guest's instructions while the guest asks.
 *
 *   -plugin count.so[,profile=PREFIX]
 *
 * Blocks of translated code add to counters of their own, which are inline and
 * cheap; what a guest asks for (see counter.h) is added up from them. A block
 * counts as a whole when it starts: one that an exception leaves early counts a
 * few instructions too many.
 *
 * Times with interrupts off begin with CLI, or with an interrupt or exception,
 * and end with STI or a return from the kernel. They are counted in instructions
 * of that vCPU. Only those in which code of a range ran are of interest; whether
 * it did is known by pages of 4 KiB.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "counter.h"

EXPORTED int qemu_plugin_version = API_VERSION;

/* Blocks that are told apart; more than a guest with all modules executes. */
#define BLOCKS 0x100000
#define SLOTS (2 * BLOCKS)
/* Modules are loaded here and above. */
#define MODULES_START 0xffffffffc0000000ULL
#define KERNEL_START 0xffff800000000000ULL
/* Pages of modules that are told apart: addresses this far apart look alike. */
#define PAGES 0x4000
#define MAX_VCPUS 16

enum off_kind {
	OFF_BY_INSN,
	OFF_BY_INTERRUPT,
	OFF_KINDS,
};

/* Blocks of one range; a driver has a few thousand. */
#define RANGE_BLOCKS 0x10000
/* Ranges of interest, and behind them the functions that spin. */
#define ALL_RANGES (COUNTER_RANGES + COUNTER_SPINS)

struct block {
	uint64_t address;
	bool in_range[ALL_RANGES];
};

struct range {
	uint64_t start;
	uint64_t end;
	uint32_t *blocks;
	size_t count;
};

/* Of one vCPU; only its own thread writes it. */
struct off_state {
	bool off;
	enum off_kind kind;
	uint64_t since;
	uint64_t spun;
	uint64_t where;
	uint64_t longest[COUNTER_RANGES][OFF_KINDS];
	uint64_t longest_where[COUNTER_RANGES][OFF_KINDS];
	uint64_t longest_until[COUNTER_RANGES][OFF_KINDS];
};

/* What a CLI, STI or the like needs to know about itself when it is executed. */
struct place {
	uint64_t address;
	/* Instructions of the block from this one on. */
	uint32_t rest;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks;
static uint32_t *slots;
static uint32_t block_count;
static bool overflowed;
static struct range ranges[ALL_RANGES];
static struct off_state offs[MAX_VCPUS];
static uint64_t *profile_base;
static char *profile_prefix;

/* Counters: instructions per vCPU in all and of the kernel, per block, per page a flag. */
static struct scoreboard *totals, *per_block, *per_page;
static const size_t total_all, total_kernel = 8;

static const char *const register_names[] = { "rax", "rdi", "rsi", "rdx", "rcx" };

enum {
	RAX,
	RDI,
	RSI,
	RDX,
	RCX,
	REGISTERS,
};

static struct reg *registers[MAX_VCPUS][REGISTERS];

static struct counter total_counter(size_t offset)
{
	return (struct counter){ totals, offset };
}

static struct counter block_counter(uint32_t block)
{
	return (struct counter){ per_block, (size_t)block * sizeof(uint64_t) };
}

static uint32_t page_of(uint64_t address)
{
	return (uint32_t)(address >> 12) & (PAGES - 1);
}

/* -- blocks --------------------------------------------------------------- */

static void enter_in_range(uint32_t block, unsigned int which)
{
	struct range *range = &ranges[which];
	uint64_t address = blocks[block].address;
	size_t count = range->count;

	if (address < range->start || address >= range->end)
		return;
	if (blocks[block].in_range[which])
		return;
	if (count == RANGE_BLOCKS) {
		overflowed = true;
		return;
	}
	range->blocks[count] = block;
	/* Other vCPUs add ranges up without the lock. */
	__atomic_store_n(&range->count, count + 1, __ATOMIC_RELEASE);
	blocks[block].in_range[which] = true;
}

/* The number of the block at @address; the last one is for those there is no room for. */
static uint32_t block_at(uint64_t address)
{
	uint32_t slot = (uint32_t)(address * 0x9e3779b97f4a7c15ULL >> 32) % SLOTS;
	unsigned int which;
	uint32_t block;

	while ((block = slots[slot]) && blocks[block].address != address)
		slot = (slot + 1) % SLOTS;
	if (block)
		return block;
	if (block_count == BLOCKS - 1) {
		overflowed = true;
		return BLOCKS - 1;
	}
	/* Number 0 means that a slot is free. */
	block = ++block_count;
	slots[slot] = block;
	blocks[block].address = address;
	for (which = 0; which < ALL_RANGES; which++)
		enter_in_range(block, which);
	return block;
}

static void set_range(unsigned int which, uint64_t start, uint64_t end)
{
	struct range *range = &ranges[which];
	uint32_t block;
	size_t i;

	for (i = 0; i < range->count; i++)
		blocks[range->blocks[i]].in_range[which] = false;
	__atomic_store_n(&range->count, 0, __ATOMIC_RELEASE);
	range->start = start;
	range->end = end;
	for (block = 1; block <= block_count; block++)
		enter_in_range(block, which);
}

static uint64_t range_sum(const struct range *range)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < range->count; i++)
		sum += qemu_plugin_u64_sum(block_counter(range->blocks[i]));
	return sum;
}

/* Instructions that vCPU @vcpu has spun. */
static uint64_t spun(unsigned int vcpu)
{
	unsigned int which;
	uint64_t sum = 0;
	size_t i, count;

	for (which = COUNTER_RANGES; which < ALL_RANGES; which++) {
		count = __atomic_load_n(&ranges[which].count, __ATOMIC_ACQUIRE);
		for (i = 0; i < count; i++)
			sum += qemu_plugin_u64_get(block_counter(ranges[which].blocks[i]), vcpu);
	}
	return sum;
}

/* -- profile -------------------------------------------------------------- */

static uint64_t profile_start(void)
{
	uint32_t block;

	if (!profile_base)
		profile_base = calloc(BLOCKS, sizeof(*profile_base));
	if (!profile_base)
		return 0;
	for (block = 1; block <= block_count; block++)
		profile_base[block] = qemu_plugin_u64_sum(block_counter(block));
	return 1;
}

/* One line per block that ran: its address, and how many instructions. */
static uint64_t profile_write(uint64_t number)
{
	char name[4096];
	uint32_t block;
	FILE *file;

	if (!profile_prefix || !profile_base)
		return 0;
	snprintf(name, sizeof(name), "%s%llu", profile_prefix, (unsigned long long)number);
	file = fopen(name, "w");
	if (!file)
		return 0;
	for (block = 1; block <= block_count; block++) {
		uint64_t count = qemu_plugin_u64_sum(block_counter(block)) - profile_base[block];

		if (count)
			fprintf(file, "%llx %llu\n", (unsigned long long)blocks[block].address,
				(unsigned long long)count);
	}
	return fclose(file) ? 0 : 1;
}

/* -- interrupts off ------------------------------------------------------- */

static uint64_t executed(unsigned int vcpu)
{
	return qemu_plugin_u64_get(total_counter(total_all), vcpu);
}

static void forget_pages(unsigned int vcpu)
{
	uint64_t *pages = qemu_plugin_scoreboard_find(per_page, vcpu);
	unsigned int which;
	uint64_t address;

	for (which = 0; which < COUNTER_RANGES; which++)
		for (address = ranges[which].start & ~0xfffULL; address < ranges[which].end;
		     address += 4096)
			pages[page_of(address)] = 0;
}

static bool ran(unsigned int vcpu, const struct range *range)
{
	const uint64_t *pages = qemu_plugin_scoreboard_find(per_page, vcpu);
	uint64_t address;

	for (address = range->start & ~0xfffULL; address < range->end; address += 4096)
		if (pages[page_of(address)])
			return true;
	return false;
}

static void goes_off(unsigned int vcpu, enum off_kind kind, uint64_t since, uint64_t where)
{
	struct off_state *state = &offs[vcpu % MAX_VCPUS];

	if (state->off)
		return;
	state->off = true;
	state->kind = kind;
	state->since = since;
	state->spun = spun(vcpu);
	state->where = where;
	forget_pages(vcpu);
}

static void goes_on(unsigned int vcpu, uint64_t now, uint64_t where)
{
	struct off_state *state = &offs[vcpu % MAX_VCPUS];
	uint64_t length = now - state->since;
	unsigned int which;

	if (!state->off)
		return;
	state->off = false;
	length -= spun(vcpu) - state->spun;
	for (which = 0; which < COUNTER_RANGES; which++) {
		if (length <= state->longest[which][state->kind] || !ran(vcpu, &ranges[which]))
			continue;
		state->longest[which][state->kind] = length;
		state->longest_where[which][state->kind] = state->where;
		state->longest_until[which][state->kind] = where;
	}
}

static void at_cli(unsigned int vcpu, void *data)
{
	const struct place *place = data;

	goes_off(vcpu, OFF_BY_INSN, executed(vcpu) - place->rest, place->address);
}

static void at_sti(unsigned int vcpu, void *data)
{
	const struct place *place = data;

	goes_on(vcpu, executed(vcpu) - place->rest, place->address);
}

static void at_discontinuity(unsigned int vcpu, enum discontinuity type, uint64_t from,
			     uint64_t to, void *data)
{
	(void)type;
	(void)from;
	(void)data;
	goes_off(vcpu, OFF_BY_INTERRUPT, executed(vcpu), to);
}

/* What @request asks of the longest time. */
static uint64_t off_longest(uint64_t request, uint64_t range, uint64_t kind)
{
	uint64_t longest = 0, where = 0, until = 0;
	unsigned int vcpu;

	if (range >= COUNTER_RANGES || kind >= OFF_KINDS)
		return 0;
	for (vcpu = 0; vcpu < MAX_VCPUS; vcpu++) {
		if (offs[vcpu].longest[range][kind] <= longest)
			continue;
		longest = offs[vcpu].longest[range][kind];
		where = offs[vcpu].longest_where[range][kind];
		until = offs[vcpu].longest_until[range][kind];
	}
	if (request == COUNTER_OFF_WHERE)
		return where;
	return request == COUNTER_OFF_UNTIL ? until : longest;
}

static void off_reset(void)
{
	unsigned int vcpu;

	for (vcpu = 0; vcpu < MAX_VCPUS; vcpu++)
		memset(offs[vcpu].longest, 0, sizeof(offs[vcpu].longest));
}

/* -- requests ------------------------------------------------------------- */

/* This thread's buffer for a register, with room for @length bytes. */
static struct byte_array *buffer(unsigned int length)
{
	static __thread struct byte_array *bytes;

	if (!bytes)
		bytes = g_byte_array_new();
	return g_byte_array_set_size(bytes, length);
}

static uint64_t register_get(unsigned int vcpu, unsigned int which)
{
	struct byte_array *bytes = buffer(0);
	uint64_t value = 0;

	if (registers[vcpu][which] && qemu_plugin_read_register(registers[vcpu][which], bytes) &&
	    bytes->len == sizeof(value))
		memcpy(&value, bytes->data, sizeof(value));
	return value;
}

static void register_set(unsigned int vcpu, unsigned int which, uint64_t value)
{
	struct byte_array *bytes = buffer(sizeof(value));

	memcpy(bytes->data, &value, sizeof(value));
	if (registers[vcpu][which])
		qemu_plugin_write_register(registers[vcpu][which], bytes);
}

static uint64_t answer(uint64_t request, const uint64_t args[3])
{
	unsigned int which;
	uint64_t sum = 0;

	switch (request) {
	case COUNTER_HELLO:
		return overflowed ? 0 : COUNTER_HERE;
	case COUNTER_SET_RANGE:
		if (args[2] < COUNTER_RANGES)
			set_range((unsigned int)args[2], args[0], args[1]);
		return args[2] < COUNTER_RANGES;
	case COUNTER_SET_SPIN:
		if (args[2] < COUNTER_SPINS)
			set_range(COUNTER_RANGES + (unsigned int)args[2], args[0], args[1]);
		return args[2] < COUNTER_SPINS;
	case COUNTER_ALL:
		return qemu_plugin_u64_sum(total_counter(total_all));
	case COUNTER_KERNEL:
		return qemu_plugin_u64_sum(total_counter(total_kernel));
	case COUNTER_IN_RANGE:
		return args[0] < COUNTER_RANGES ? range_sum(&ranges[args[0]]) : 0;
	case COUNTER_SPINNING:
		for (which = COUNTER_RANGES; which < ALL_RANGES; which++)
			sum += range_sum(&ranges[which]);
		return sum;
	case COUNTER_OFF_RESET:
		off_reset();
		return 1;
	case COUNTER_OFF_LONGEST:
	case COUNTER_OFF_WHERE:
	case COUNTER_OFF_UNTIL:
		return off_longest(request, args[0], args[1]);
	case COUNTER_PROFILE_START:
		return profile_start();
	case COUNTER_PROFILE_WRITE:
		return profile_write(args[0]);
	default:
		return 0;
	}
}

static void at_request(unsigned int vcpu, void *data)
{
	uint64_t args[3], given;

	(void)data;
	if (vcpu >= MAX_VCPUS)
		return;
	args[0] = register_get(vcpu, RSI);
	args[1] = register_get(vcpu, RDX);
	args[2] = register_get(vcpu, RCX);
	pthread_mutex_lock(&lock);
	given = answer(register_get(vcpu, RDI), args);
	pthread_mutex_unlock(&lock);
	register_set(vcpu, RAX, given);
}

/* -- translation ---------------------------------------------------------- */

static bool is_request(const uint8_t *bytes, size_t length)
{
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x80 };
	uint32_t displacement;

	if (length != sizeof(nop) + sizeof(displacement) || memcmp(bytes, nop, sizeof(nop)))
		return false;
	memcpy(&displacement, bytes + sizeof(nop), sizeof(displacement));
	return displacement == COUNTER_MAGIC;
}

static bool is_cli(const uint8_t *bytes, size_t length)
{
	return length == 1 && bytes[0] == 0xfa;
}

/* STI, and what leaves the kernel: IRETQ, SYSRETQ. */
static bool is_sti(const uint8_t *bytes, size_t length)
{
	return (length == 1 && bytes[0] == 0xfb) ||
	       (length == 2 && bytes[0] == 0x48 && bytes[1] == 0xcf) ||
	       (length == 3 && bytes[0] == 0x48 && bytes[1] == 0x0f && bytes[2] == 0x07);
}

static void watch(struct insn *insn, uint32_t rest, vcpu_function function)
{
	/* Lives as long as QEMU may execute the block: there is no telling how long. */
	struct place *place = malloc(sizeof(*place));

	if (!place) {
		overflowed = true;
		return;
	}
	place->address = qemu_plugin_insn_vaddr(insn);
	place->rest = rest;
	qemu_plugin_register_vcpu_insn_exec_cb(insn, function, REGISTERS_NONE, place);
}

static void translate(struct tb *tb, void *data)
{
	uint64_t address = qemu_plugin_tb_vaddr(tb);
	size_t count = qemu_plugin_tb_n_insns(tb), i;
	bool kernel = address >= KERNEL_START;
	uint32_t block;

	(void)data;
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, INLINE_ADD,
							  total_counter(total_all), count);
	if (kernel) {
		pthread_mutex_lock(&lock);
		block = block_at(address);
		pthread_mutex_unlock(&lock);
		qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, INLINE_ADD,
								  total_counter(total_kernel),
								  count);
		qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, INLINE_ADD,
								  block_counter(block), count);
	}
	if (address >= MODULES_START) {
		struct counter page = { per_page, page_of(address) * sizeof(uint64_t) };

		qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, INLINE_STORE, page, 1);
	}
	for (i = 0; i < count; i++) {
		struct insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t bytes[16];
		size_t length = qemu_plugin_insn_data(insn, bytes, sizeof(bytes));

		if (kernel && is_cli(bytes, length))
			watch(insn, (uint32_t)(count - i), at_cli);
		else if (kernel && is_sti(bytes, length))
			watch(insn, (uint32_t)(count - i), at_sti);
		else if (!kernel && is_request(bytes, length))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, at_request,
							       REGISTERS_READ_WRITE, NULL);
	}
}

static void vcpu_starts(unsigned int vcpu, void *data)
{
	struct array *found = qemu_plugin_get_registers();
	const struct register_info *info = (void *)found->data;
	unsigned int i, which;

	(void)data;
	for (i = 0; vcpu < MAX_VCPUS && i < found->len; i++)
		for (which = 0; which < REGISTERS; which++)
			if (!strcmp(info[i].name, register_names[which]))
				registers[vcpu][which] = info[i].handle;
	g_array_free(found, 1);
}

EXPORTED int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv);

int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv)
{
	static const char option[] = "profile=";
	int i;

	for (i = 0; i < argc; i++) {
		if (strncmp(argv[i], option, strlen(option))) {
			fprintf(stderr, "count.so: %s: no such option\n", argv[i]);
			return 1;
		}
		profile_prefix = argv[i] + strlen(option);
	}
	if (!info->is_system || strcmp(info->target, "x86_64")) {
		fprintf(stderr, "count.so: made for x86_64 machines, not for %s\n", info->target);
		return 1;
	}
	blocks = calloc(BLOCKS, sizeof(*blocks));
	slots = calloc(SLOTS, sizeof(*slots));
	totals = qemu_plugin_scoreboard_new(2 * sizeof(uint64_t));
	per_block = qemu_plugin_scoreboard_new(BLOCKS * sizeof(uint64_t));
	per_page = qemu_plugin_scoreboard_new(PAGES * sizeof(uint64_t));
	for (i = 0; i < ALL_RANGES; i++) {
		ranges[i].blocks = calloc(RANGE_BLOCKS, sizeof(*ranges[i].blocks));
		if (!ranges[i].blocks)
			blocks = NULL;
	}
	if (!blocks || !slots || !totals || !per_block || !per_page) {
		fprintf(stderr, "count.so: no memory for the counters\n");
		return 1;
	}
	qemu_plugin_register_vcpu_init_cb(id, vcpu_starts, NULL);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate, NULL);
	qemu_plugin_register_vcpu_discon_cb(id, DISCON_INTERRUPT | DISCON_EXCEPTION,
					    at_discontinuity, NULL);
	return 0;
}
