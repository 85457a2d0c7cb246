// SPDX-License-Identifier: GPL-2.0
#include <assert.h>
#include <endian.h>
#include <string.h>

#include "payload.h"

#define MAGIC_DATA 0x64617461
#define MAGIC_MARKER 0x6d61726b

struct prefix {
	uint32_t magic;
	uint32_t token;
	uint32_t length;
};

static_assert(sizeof(struct prefix) == TOKEN_BYTES, "prefix holds the token");

unsigned char payload_byte(uint32_t token, uint32_t position)
{
	uint32_t mixed = (token * 2654435761u) ^ (position * 40503u);

	return mixed >> 11;
}

void payload_write(unsigned char *payload, const struct datagram *datagram,
		   uint32_t token)
{
	struct prefix prefix = {
		.magic = htobe32(datagram->marker ? MAGIC_MARKER : MAGIC_DATA),
		.token = htobe32(token),
		.length = htobe32(datagram->length),
	};
	uint32_t i;

	for (i = 0; i < datagram->length; i++)
		payload[i] = payload_byte(token, i);
	if (datagram->length >= sizeof(prefix))
		memcpy(payload, &prefix, sizeof(prefix));
}

void payload_read(const unsigned char *payload, struct received *received)
{
	struct prefix prefix;
	uint32_t magic, i;

	received->token = 0;
	received->marker = false;
	/* Shorter ones are judged by who knows which token was sent. */
	received->intact = true;
	if (received->length < sizeof(prefix)) {
		if (received->length)
			received->token = payload[0];
		return;
	}

	memcpy(&prefix, payload, sizeof(prefix));
	magic = be32toh(prefix.magic);
	received->token = be32toh(prefix.token);
	received->marker = magic == MAGIC_MARKER;
	received->intact = (magic == MAGIC_DATA || magic == MAGIC_MARKER) &&
			   be32toh(prefix.length) == received->length;
	for (i = sizeof(prefix); i < received->length; i++)
		if (payload[i] != payload_byte(received->token, i))
			received->intact = false;
}
