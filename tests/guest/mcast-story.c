// SPDX-License-Identifier: GPL-2.0
/*
 * mcast-story: the life of one multicast group, told while it happens.
 *
 * The receiver runs here and leads; the sender is the node at the address
 * given, where the same program follows.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "command.h"

#define PAYLOAD 1024
#define MANY 1000
#define SOME 100
#define DEPTH (MANY + 24)

struct story {
	struct bench bench;
	struct shot shot;
	struct party *receivers[2];
	unsigned int receiver_count;
	unsigned int chapter;
	bool any_mac;
};

static void tell(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

static void tell(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

static enum verdict chapter(struct story *story, const char *text)
{
	tell("\n%u. %s", ++story->chapter, text);
	return PASS;
}

/* What the card itself says about the group must be what we believe. */
static enum verdict ask_device(struct story *story, unsigned int members)
{
	const union ibv_gid *to = &story->shot.to;
	struct nic_group seen;
	char text[2][MAC_TEXT];
	unsigned char mac[6];
	unsigned int i;
	int err;

	if (!nic_available()) {
		tell("   (no virtual card here that could be asked)");
		return PASS;
	}
	err = nic_group(to, &seen);
	if (err)
		return ktap_fail("ask the device for %s: %s", gid_text(to),
				 strerror(err));
	if (!seen.present) {
		tell("   The device knows no group %s.", gid_text(to));
	} else {
		printf("   The device has group %s at MAC %s, members:",
		       gid_text(to), mac_text(seen.mac, text[0]));
		for (i = 0; i < seen.members; i++)
			printf(" QP %u", seen.qpn[i]);
		putchar('\n');
	}
	if (seen.members != members || seen.present != !!members)
		return ktap_fail("device lists %u members of %s, not %u",
				 seen.members, gid_text(to), members);
	gid_multicast_mac(to, mac);
	if (members && !story->any_mac && memcmp(mac, seen.mac, sizeof(mac)))
		return ktap_fail("device has %s at %s, the standard says %s",
				 gid_text(to), mac_text(seen.mac, text[0]),
				 mac_text(mac, text[1]));
	return PASS;
}

static enum verdict another_receiver(struct story *story)
{
	struct party **receiver = &story->receivers[story->receiver_count];
	enum verdict verdict;

	verdict = bench_party_with(&story->bench, 0, story->shot.sender->family,
				   DEFAULT_QKEY, DEPTH, receiver);
	if (verdict == PASS) {
		story->receiver_count++;
		tell("   Queue pair %u, type UD, is ready to receive.",
		     (*receiver)->qpn);
	}
	return verdict;
}

static const char all_right[] =
	": in order, from the right address and queue pair,\n"
	"   IP header and every payload byte as they should be.";

/* Sends @count datagrams; every receiver must get @copies of each. */
static enum verdict send_and_count(struct story *story, uint32_t count,
				   uint32_t copies)
{
	enum verdict verdict;
	unsigned int i;

	story->shot.count = count;
	verdict = bench_shoot(&story->bench, &story->shot);
	if (verdict != PASS)
		return verdict;
	tell("   Queue pair %u on the other machine sent %u datagrams of %u bytes.",
	     story->shot.sender->qpn, count, story->shot.length);
	for (i = 0; i < story->receiver_count; i++) {
		verdict = bench_expect(&story->bench, &story->shot,
				       story->receivers[i], copies);
		if (verdict != PASS)
			return verdict;
		tell("   Queue pair %u received %u of them%s",
		     story->receivers[i]->qpn, count * copies,
		     copies ? all_right : ".");
	}
	return PASS;
}

static enum verdict attach(struct story *story, unsigned int which)
{
	enum verdict verdict = bench_attach(story->receivers[which],
					    &story->shot.to);

	if (verdict == PASS)
		tell("   Queue pair %u is attached to %s.",
		     story->receivers[which]->qpn, gid_text(&story->shot.to));
	return verdict;
}

static enum verdict detach(struct story *story, unsigned int which)
{
	enum verdict verdict = bench_detach(story->receivers[which],
					    &story->shot.to);

	if (verdict == PASS)
		tell("   Queue pair %u is detached.",
		     story->receivers[which]->qpn);
	return verdict;
}

static enum verdict tell_all(struct story *story)
{
	enum verdict verdict = PASS;

#define THEN(step) (verdict = verdict == PASS ? (step) : verdict)
	THEN(bench_party(&story->bench, 1, gid_family(&story->shot.to),
			 &story->shot.sender));
	THEN(chapter(story, "A receiver joins the group."));
	THEN(another_receiver(story));
	THEN(ask_device(story, 0));
	THEN(attach(story, 0));
	THEN(ask_device(story, 1));

	THEN(chapter(story, "A machine that is no member sends to the group."));
	THEN(send_and_count(story, MANY, 1));

	THEN(chapter(story, "The receiver attaches again: it still gets one copy."));
	THEN(attach(story, 0));
	THEN(ask_device(story, 1));
	THEN(send_and_count(story, SOME, 1));

	THEN(chapter(story, "A second queue pair joins: each gets its own copy."));
	THEN(another_receiver(story));
	THEN(attach(story, 1));
	THEN(ask_device(story, 2));
	THEN(send_and_count(story, SOME, 1));

	THEN(chapter(story, "Both leave: nothing arrives any more."));
	THEN(detach(story, 0));
	THEN(ask_device(story, 1));
	THEN(detach(story, 1));
	THEN(ask_device(story, 0));
	THEN(send_and_count(story, SOME, 0));
#undef THEN
	return verdict;
}

static int lead(struct device *device, const char *address,
		const union ibv_gid *group, bool any_mac)
{
	static struct story story;
	struct bench *bench = &story.bench;
	enum verdict verdict;

	bench->device = device;
	bench->next_token = 1000;
	if (node_local(&bench->nodes[0], device) ||
	    node_connect(&bench->nodes[1], address, 6 * WAIT_MS))
		return EXIT_FAILURE;
	bench->node_count = 2;
	story.any_mac = any_mac;
	story.shot.to = *group;
	story.shot.length = PAYLOAD;

	tell("The story of multicast group %s, on device %s.", gid_text(group),
	     device->name);
	verdict = tell_all(&story);
	bench_clear(bench);
	node_close(&bench->nodes[1]);
	node_close(&bench->nodes[0]);
	if (verdict != PASS || bench->stuck) {
		tell("story: FAIL %s", verdict == PASS ?
		     "a queue pair could not be destroyed" : ktap_reason());
		return EXIT_FAILURE;
	}
	tell("\nstory: PASS");
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	const char *name = NULL, *address = "239.1.2.3";
	bool follow = false, any_mac = false;
	const struct choice choices[] = {
		CHOICE_DEVICE(&name),
		CHOICE_TEXT('g', "group", "ADDR", &address,
			    "the group (default 239.1.2.3)"),
		CHOICE_FLAG('m', "any-mac", &any_mac,
			    "the group may be at another MAC than the standard's"),
		CHOICE_FLAG('f', "follow", &follow,
			    "serve the story teller, which runs on another node"),
	};
	const struct command command = {
		.name = "mcast-story",
		.words = "[OPTION]... SENDER-ADDRESS\n--follow",
		.about = "Tell the story of one multicast group between two machines.",
		COMMAND_CHOICES(choices),
	};
	int words = command_read(&command, argc, argv), status;
	struct device device;
	union ibv_gid group;

	if (argc - words != !follow)
		return command_refuse(&command, "the sender's address, or --follow");
	if (!gid_parse(address, &group))
		return command_refuse(&command, "--group: %s is no address",
				      address);
	if (device_open(&device, name))
		return EXIT_FAILURE;
	if (follow)
		status = node_serve(&device, 6 * WAIT_MS) ? EXIT_FAILURE :
							    EXIT_SUCCESS;
	else
		status = lead(&device, argv[words], &group, any_mac);
	device_close(&device);
	return status;
}
