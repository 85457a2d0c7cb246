/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The payload of a test datagram: magic and token when there is room, then
 * bytes that follow from the token, so that a receiver can check each one.
 */
#ifndef GUEST_PAYLOAD_H
#define GUEST_PAYLOAD_H

#include "endpoint.h"

void payload_write(unsigned char *payload, const struct datagram *datagram,
		   uint32_t token);

/*
 * Fills in token, marker and intact for @received->length bytes. A payload too
 * short for a token is always intact and has its first byte, or 0, for a token.
 */
void payload_read(const unsigned char *payload, struct received *received);

/* Byte @position of a payload, where the prefix does not cover it. */
unsigned char payload_byte(uint32_t token, uint32_t position);

#endif
