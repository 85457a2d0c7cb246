// SPDX-License-Identifier: GPL-2.0
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "header.h"

#define IPV4_BYTES 20
#define UDP_BYTES 8
#define BTH_BYTES 12
#define DETH_BYTES 8
#define IMMDT_BYTES 4
#define ICRC_BYTES 4
#define PROTOCOL_UDP 17

static unsigned int get_be16(const unsigned char *bytes)
{
	return bytes[0] << 8 | bytes[1];
}

/* Bytes after the IP header. */
static unsigned int udp_length(unsigned int payload, bool immediate)
{
	unsigned int padded = (payload + 3) & ~3u;

	return UDP_BYTES + BTH_BYTES + DETH_BYTES +
	       (immediate ? IMMDT_BYTES : 0) + padded + ICRC_BYTES;
}

static unsigned int ones_complement_sum(const unsigned char *bytes,
					unsigned int length)
{
	unsigned int sum = 0, i;

	for (i = 0; i + 1 < length; i += 2)
		sum += get_be16(&bytes[i]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void fault(struct header *header, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Keeps the first fault found. */
static void fault(struct header *header, const char *format, ...)
{
	va_list args;

	if (header->fault[0])
		return;
	va_start(args, format);
	vsnprintf(header->fault, sizeof(header->fault), format, args);
	va_end(args);
}

static void read_ipv4(struct header *header, const unsigned char *buffer,
		      unsigned int length)
{
	const unsigned char *ip = &buffer[HEADER_BYTES - IPV4_BYTES];

	if (buffer[0] >> 4 == 6)
		fault(header, "byte 0 is 0x%02x: reads as an IPv6 header",
		      buffer[0]);
	if (ip[0] != 0x45)
		fault(header, "byte 20 is 0x%02x, not version 4 with 5 words",
		      ip[0]);
	if (get_be16(&ip[2]) != IPV4_BYTES + length)
		fault(header, "IPv4 total length is %u, not %u",
		      get_be16(&ip[2]), IPV4_BYTES + length);
	if (ip[9] != PROTOCOL_UDP)
		fault(header, "IPv4 protocol is %u, not UDP", ip[9]);
	if (ones_complement_sum(ip, IPV4_BYTES) != 0xffff)
		fault(header, "IPv4 header checksum 0x%04x is wrong",
		      get_be16(&ip[10]));

	gid_parse("0.0.0.0", &header->source);
	header->destination = header->source;
	memcpy(&header->source.raw[12], &ip[12], 4);
	memcpy(&header->destination.raw[12], &ip[16], 4);
}

static void read_ipv6(struct header *header, const unsigned char *ip,
		      unsigned int length)
{
	if (ip[0] >> 4 != 6)
		fault(header, "byte 0 is 0x%02x, not version 6", ip[0]);
	if (get_be16(&ip[4]) != length)
		fault(header, "IPv6 payload length is %u, not %u",
		      get_be16(&ip[4]), length);
	if (ip[6] != PROTOCOL_UDP)
		fault(header, "IPv6 next header is %u, not UDP", ip[6]);
	memcpy(header->source.raw, &ip[8], 16);
	memcpy(header->destination.raw, &ip[24], 16);
}

void header_read(struct header *header, const unsigned char *buffer,
		 enum family family, unsigned int payload, bool immediate)
{
	unsigned int length = udp_length(payload, immediate);

	memset(header, 0, sizeof(*header));
	if (family == IPV4)
		read_ipv4(header, buffer, length);
	else
		read_ipv6(header, buffer, length);
}
