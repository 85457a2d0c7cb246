// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "nic.h"

/* The result of @command, or NULL: the caller owns it. */
static json_t *ask(const char *command)
{
	char line[96];
	json_error_t fault;
	json_t *answer, *result;
	FILE *pipe;
	int status;

	snprintf(line, sizeof(line), "nicctl %s 2>/dev/null", command);
	pipe = popen(line, "re");
	if (!pipe)
		return NULL;
	answer = json_loadf(pipe, JSON_DISABLE_EOF_CHECK, &fault);
	status = pclose(pipe);
	if (status) {
		json_decref(answer);
		return NULL;
	}
	/* Either the bare result, or the reply that wraps it. */
	result = json_object_get(answer, "result");
	if (!result)
		return answer;
	json_incref(result);
	json_decref(answer);
	return result;
}

bool nic_available(void)
{
	static int known = -1;

	if (known < 0) {
		json_t *state = ask("state");

		known = json_is_object(json_object_get(state, "rdma"));
		json_decref(state);
	}
	return known;
}

int nic_group_count(void)
{
	json_t *groups = ask("groups");
	int count = json_is_array(groups) ? (int)json_array_size(groups) : -1;

	json_decref(groups);
	return count;
}

static void add_members(struct nic_group *group, json_t *entry)
{
	size_t i;
	json_t *member;

	json_array_foreach(json_object_get(entry, "members"), i, member) {
		json_t *qpn = json_object_get(member, "qp");

		if (group->members < NIC_MEMBERS)
			group->qpn[group->members++] =
				(uint32_t)json_integer_value(qpn);
	}
}

static bool read_mac(unsigned char mac[6], const char *text)
{
	return text && sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0],
			      &mac[1], &mac[2], &mac[3], &mac[4],
			      &mac[5]) == 6;
}

int nic_group(const union ibv_gid *gid, struct nic_group *group)
{
	json_t *groups = ask("groups"), *entry;
	int err = 0;
	size_t i;

	memset(group, 0, sizeof(*group));
	if (!json_is_array(groups)) {
		json_decref(groups);
		return EIO;
	}
	json_array_foreach(groups, i, entry) {
		const char *text = json_string_value(json_object_get(entry, "ip"));
		union ibv_gid ip;

		if (!text || !gid_parse(text, &ip) ||
		    memcmp(&ip, gid, sizeof(ip)))
			continue;
		group->present = true;
		add_members(group, entry);
		text = json_string_value(json_object_get(entry, "mac"));
		if (!read_mac(group->mac, text))
			err = EPROTO;
	}
	json_decref(groups);
	return err;
}

long nic_objects(const char *object)
{
	json_t *state = ask("state"), *value;
	long count = -1;

	value = json_object_get(json_object_get(state, "rdma"), object);
	if (json_is_integer(value))
		count = (long)json_integer_value(value);
	json_decref(state);
	return count;
}
