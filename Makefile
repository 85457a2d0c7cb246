# SPDX-License-Identifier: GPL-2.0
#
# For people; `make help` says what there is. Kbuild itself reads the file Kbuild,
# so that `make -C <a prepared 7.3 tree> M=$PWD modules` works without this one.

DRIVER ?=
BENCH ?=
DRIVER_OPTION = $(if $(DRIVER),--driver $(DRIVER))

FILTER ?=
FRESH ?=

.PHONY: help setup modules test test-debug kunit coverage demo bench lint fmt clean

help:
	@echo 'make setup            make and cache all but the debug kernel (scripts/env)'
	@echo 'make demo [DRIVER=irdma]   the story of one multicast group in two guests'
	@echo 'make test [FRESH=1]   all tests, on irdma_rs and on stock irdma; what has no part of'
	@echo '                      irdma_rs is not run again while nothing in it has changed'
	@echo 'make test-debug       irdma_rs alone, all its suites with KASAN, lockdep and kmemleak'
	@echo 'make bench [BENCH=--quick|--full]   irdma_rs beside stock irdma: costs, memory, rates'
	@echo 'make kunit [FILTER=SUITE.TEST]   KUnit suites, on the debug kernel'
	@echo 'make coverage         lines of the modules that KUnit and other suites run on the debug kernel'
	@echo 'make modules          build the modules (*.ko) against the stock kernel'
	@echo 'make lint             formatting and static checks of all languages'
	@echo 'make fmt              format the Rust sources of the modules'
	@echo 'make clean            delete what was built in this tree'
	@echo
	@echo 'scripts/lab --help    run commands in guests with a virtual E810'
	@echo 'scripts/env --help    the environment: build root, kernel, guest image'
	@echo
	@echo 'With a prepared tree of your own: make -C <tree> M=$$PWD modules'

setup:
	scripts/env

# KDIR names a prepared tree to build against, in place of the cached one: configured,
# and with the metadata of its Rust crates, which header packages do not carry.
modules:
ifdef KDIR
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules
else
	scripts/build-modules
endif

demo:
	tests/suites/demo $(DRIVER_OPTION)

bench:
	tests/bench/run $(BENCH)

test:
	tests/suites/run $(if $(filter-out 0,$(FRESH)),--fresh)

test-debug:
	tests/suites/run --kernel debug

kunit:
	tests/suites/kunit $(if $(FILTER),'$(FILTER)')

coverage:
	tests/suites/run --coverage

lint:
	scripts/lint

fmt:
	scripts/lint --fix rustfmt

clean:
	rm -f *.ko Module.symvers modules.order
	rm -rf tests/nic/target
