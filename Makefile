# SPDX-License-Identifier: GPL-2.0
#
# KDIR is a prepared Linux 7.3 tree: configured, and with the metadata of its Rust
# crates, which header packages do not carry.

KDIR ?= /lib/modules/$(shell uname -r)/build
CC ?= gcc

KMAKE = $(MAKE) -C $(KDIR) M=$(CURDIR)

.PHONY: modules clippy clean

modules:
	$(KMAKE) modules

clippy:
	$(KMAKE) CLIPPY=1 modules

clean:
	$(KMAKE) clean
