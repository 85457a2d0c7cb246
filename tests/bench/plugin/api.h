/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the counter uses of QEMU's interface for plugins, version 7, and of
 * GLib, which QEMU brings along. Debian packs no header of either with QEMU.
 */
#ifndef BENCH_PLUGIN_API_H
#define BENCH_PLUGIN_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define API_VERSION 7
#define EXPORTED __attribute__((visibility("default")))

/* -- GLib ----------------------------------------------------------------- */

struct byte_array {
	uint8_t *data;
	unsigned int len;
};

struct array {
	char *data;
	unsigned int len;
};

struct byte_array *g_byte_array_new(void);
struct byte_array *g_byte_array_set_size(struct byte_array *array, unsigned int length);
char *g_array_free(struct array *array, int with_data);

/* -- QEMU ----------------------------------------------------------------- */

struct tb;
struct insn;
struct scoreboard;
struct reg;

/* Given to the plugin when it is loaded. */
struct qemu_info {
	const char *target;
	struct {
		int min;
		int cur;
	} version;
	bool is_system;
	struct {
		int smp_vcpus;
		int max_vcpus;
	} system;
};

/* A 64-bit number that each vCPU has one of. */
struct counter {
	struct scoreboard *score;
	size_t offset;
};

struct register_info {
	struct reg *handle;
	const char *name;
	const char *feature;
	bool read_only;
};

enum inline_op {
	INLINE_ADD,
	INLINE_STORE,
};

enum register_access {
	REGISTERS_NONE,
	REGISTERS_READ,
	REGISTERS_READ_WRITE,
};

enum discontinuity {
	DISCON_INTERRUPT = 1,
	DISCON_EXCEPTION = 2,
};

typedef void (*vcpu_function)(unsigned int vcpu, void *data);
typedef void (*translate_function)(struct tb *tb, void *data);
typedef void (*discon_function)(unsigned int vcpu, enum discontinuity type, uint64_t from,
				uint64_t to, void *data);

void qemu_plugin_register_vcpu_init_cb(uint64_t id, vcpu_function function, void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, translate_function function, void *data);
void qemu_plugin_register_vcpu_discon_cb(uint64_t id, enum discontinuity types,
					 discon_function function, void *data);
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct tb *tb, enum inline_op op,
						       struct counter counter, uint64_t value);
void qemu_plugin_register_vcpu_insn_exec_cb(struct insn *insn, vcpu_function function,
					    enum register_access access, void *data);

size_t qemu_plugin_tb_n_insns(const struct tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct tb *tb);
struct insn *qemu_plugin_tb_get_insn(const struct tb *tb, size_t index);
size_t qemu_plugin_insn_data(const struct insn *insn, void *bytes, size_t length);
uint64_t qemu_plugin_insn_vaddr(const struct insn *insn);

struct array *qemu_plugin_get_registers(void);
bool qemu_plugin_read_register(struct reg *handle, struct byte_array *value);
bool qemu_plugin_write_register(struct reg *handle, struct byte_array *value);

struct scoreboard *qemu_plugin_scoreboard_new(size_t size);
void *qemu_plugin_scoreboard_find(struct scoreboard *score, unsigned int vcpu);
uint64_t qemu_plugin_u64_get(struct counter counter, unsigned int vcpu);
uint64_t qemu_plugin_u64_sum(struct counter counter);
int qemu_plugin_num_vcpus(void);

#endif
