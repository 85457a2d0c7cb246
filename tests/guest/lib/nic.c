// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "device.h"
#include "nic.h"

#define CHANNEL "/dev/virtio-ports/nicctl"
/* Who talks to the card holds this, here and in the program nicctl. */
#define LOCK "/run/nicctl.lock"
#define ANSWER_MS 30000
/* How long a report may be on its way, and how often the switch is asked meanwhile. */
#define GROUP_MS 5000
#define GROUP_STEP_MS 20

/* Reads one line, with its end, into @line that grows; negative at the deadline. */
static ssize_t read_line(int channel, char **line, size_t *room)
{
	struct pollfd wait = { .fd = channel, .events = POLLIN };
	size_t length = 0;

	for (;;) {
		ssize_t got;

		if (length + 1 >= *room) {
			size_t more = *room ? 2 * *room : 65536;
			char *grown = realloc(*line, more);

			if (!grown)
				return -1;
			*line = grown;
			*room = more;
		}
		if (poll(&wait, 1, ANSWER_MS) != 1)
			return -1;
		got = read(channel, *line + length, *room - length - 1);
		if (got <= 0)
			return -1;
		length += (size_t)got;
		if ((*line)[length - 1] == '\n') {
			(*line)[length] = '\0';
			return (ssize_t)length;
		}
	}
}

/* Answers to requests whose sender was killed may come first. */
static json_t *find_answer(int channel, json_int_t id)
{
	json_t *found = NULL;
	char *line = NULL;
	size_t room = 0;

	while (!found && read_line(channel, &line, &room) > 0) {
		char *rest, *one;

		for (one = strtok_r(line, "\n", &rest); one && !found;
		     one = strtok_r(NULL, "\n", &rest)) {
			json_t *reply = json_loads(one, 0, NULL);

			if (json_integer_value(json_object_get(reply, "id")) == id)
				found = reply;
			else
				json_decref(reply);
		}
	}
	free(line);
	return found;
}

static json_t *talk(json_t *request)
{
	static json_int_t last;
	json_int_t id = (json_int_t)getpid() * 1000000 + ++last;
	json_t *reply = NULL;
	char *text;
	int channel;

	channel = open(CHANNEL, O_RDWR | O_CLOEXEC);
	if (channel < 0)
		return NULL;
	json_object_set_new(request, "id", json_integer(id));
	text = json_dumps(request, JSON_COMPACT);
	if (text && dprintf(channel, "%s\n", text) > 0)
		reply = find_answer(channel, id);
	free(text);
	close(channel);
	return reply;
}

/*
 * The result of @request, which is used up; NULL if the card refuses or there is
 * none. The caller owns the result.
 */
static json_t *ask(json_t *request)
{
	json_t *reply = NULL, *result = NULL;
	int lock = open(LOCK, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (lock >= 0 && !flock(lock, LOCK_EX))
		reply = talk(request);
	if (lock >= 0)
		close(lock);
	json_decref(request);
	if (json_is_true(json_object_get(reply, "ok")))
		result = json_incref(json_object_get(reply, "result"));
	json_decref(reply);
	return result;
}

static json_t *command(const char *name)
{
	return ask(json_pack("{s:s}", "cmd", name));
}

bool nic_available(void)
{
	static int known = -1;

	if (known < 0) {
		json_t *state = command("state");

		known = json_is_object(json_object_get(state, "rdma"));
		json_decref(state);
	}
	return known;
}

int nic_group_count(void)
{
	json_t *groups = command("groups");
	int count = json_is_array(groups) ? (int)json_array_size(groups) : -1;

	json_decref(groups);
	return count;
}

int nic_groups_with(unsigned int members)
{
	json_t *groups = command("groups"), *entry;
	int count = json_is_array(groups) ? 0 : -1;
	size_t i;

	json_array_foreach(groups, i, entry)
		count += json_array_size(json_object_get(entry, "members")) ==
			 members;
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
	json_t *groups = command("groups"), *entry;
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
		group->entries++;
		add_members(group, entry);
		text = json_string_value(json_object_get(entry, "mac"));
		if (!read_mac(group->mac, text))
			err = EPROTO;
	}
	json_decref(groups);
	return err;
}

/* Whether there is a switch that listens to IGMP and MLD. */
static bool snoops(void)
{
	json_t *answer = command("switch");
	bool found = json_is_object(json_object_get(answer, "snoop"));

	json_decref(answer);
	return found;
}

/* Whether one of @ports, as the switch lists them, is called @name. */
static bool has_port(json_t *ports, const char *name)
{
	json_t *port;
	size_t i;

	json_array_foreach(ports, i, port) {
		const char *text =
			json_string_value(json_object_get(port, "port"));

		if (text && name && !strcmp(text, name))
			return true;
	}
	return false;
}

/* Whether that switch sends group @gid to our port. */
static bool subscribed(const union ibv_gid *gid)
{
	json_t *state = command("state"), *answer = command("members"), *entry;
	json_t *name = json_object_get(json_object_get(state, "port"), "name");
	bool found = false;
	size_t i;

	json_array_foreach(json_object_get(answer, "groups"), i, entry) {
		const char *text =
			json_string_value(json_object_get(entry, "group"));
		union ibv_gid group;

		if (text && gid_parse(text, &group) &&
		    !memcmp(&group, gid, sizeof(group)))
			found |= has_port(json_object_get(entry, "ports"),
					  json_string_value(name));
	}
	json_decref(answer);
	json_decref(state);
	return found;
}

int nic_await_group(const union ibv_gid *gid, bool here)
{
	int waited;

	if (!snoops())
		return 0;
	for (waited = 0; waited < GROUP_MS; waited += GROUP_STEP_MS) {
		if (subscribed(gid) == here)
			return 0;
		poll(NULL, 0, GROUP_STEP_MS);
	}
	return ETIMEDOUT;
}

long nic_number(const char *name, const char *path)
{
	json_t *answer = command(name), *value = answer;
	char *copy = strdup(path), *rest, *part;
	long number = -1;

	for (part = copy ? strtok_r(copy, ".", &rest) : NULL; part;
	     part = strtok_r(NULL, ".", &rest))
		value = json_object_get(value, part);
	if (json_is_integer(value))
		number = (long)json_integer_value(value);
	free(copy);
	json_decref(answer);
	return number;
}

long nic_objects(const char *object)
{
	char path[64];

	snprintf(path, sizeof(path), "rdma.%s", object);
	return nic_number("state", path);
}

long nic_operations(const char *op)
{
	char path[64];
	long count;

	snprintf(path, sizeof(path), "cqp.%s", op);
	count = nic_number("ops", path);
	/* What never happened is not listed. */
	return count < 0 && nic_available() ? 0 : count;
}

static int order(json_t *request)
{
	json_t *result = ask(request);
	int err = result ? 0 : EIO;

	json_decref(result);
	return err;
}

int nic_fault(const char *op, const char *action)
{
	return nic_faults(op, 1, 1, action);
}

int nic_faults(const char *op, unsigned int every, unsigned int count,
	       const char *action)
{
	return order(json_pack("{s:s, s:s, s:i, s:i, s:i, s:s}", "cmd", "fault",
			       "op", op, "nth", (int)every, "every", (int)every,
			       "count", (int)count, "action", action));
}

int nic_faults_clear(void)
{
	return order(json_pack("{s:s, s:b}", "cmd", "fault", "clear", 1));
}

int nic_release(void)
{
	return order(json_pack("{s:s}", "cmd", "release"));
}
