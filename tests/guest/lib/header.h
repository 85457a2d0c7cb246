/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The network header a UD receive leaves in the first 40 bytes of its buffer:
 * an IPv6 header (the GRH) in all of them, or an IPv4 header in bytes 20 to 39.
 */
#ifndef GUEST_HEADER_H
#define GUEST_HEADER_H

#include <infiniband/verbs.h>

#include "device.h"

#define HEADER_BYTES 40

struct header {
	union ibv_gid source;
	union ibv_gid destination;
	/* Empty, or what is wrong with the header. */
	char fault[96];
};

/*
 * Reads the header of @family from @buffer of a packet with @payload bytes,
 * which carried immediate data or not; judges every field whose value follows
 * from the standards.
 */
void header_read(struct header *header, const unsigned char *buffer,
		 enum family family, unsigned int payload, bool immediate);

#endif
