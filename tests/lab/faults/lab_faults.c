// SPDX-License-Identifier: GPL-2.0
/*
 * Mistakes made on purpose, one for each detector of the debug kernel, so that
 * tests/lab/self-check can see that a run with such a mistake fails. Loading the
 * module makes the mistake that the parameter `kind` names. Only for a guest that is
 * thrown away.
 */

#include <kunit/test.h>
#include <linux/dma-mapping.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

static char *kind = "none";
module_param(kind, charp, 0444);
MODULE_PARM_DESC(kind, "lock, atomic, dma, object, bounds, list, memory, leak or none");

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);
static DEFINE_SPINLOCK(spin);

/* Two locks in one order, then in the other. */
static void make_lock(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);
	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
}

/* Sleep where one must not. */
static void make_atomic(void)
{
	spin_lock(&spin);
	mutex_lock(&first);
	mutex_unlock(&first);
	spin_unlock(&spin);
}

/* Give back a mapping that was never made. */
static void make_dma(void)
{
	struct platform_device *device;

	device = platform_device_register_simple("lab_faults", -1, NULL, 0);
	if (IS_ERR(device))
		return;
	if (!dma_coerce_mask_and_coherent(&device->dev, DMA_BIT_MASK(64)))
		dma_unmap_single(&device->dev, 0x1000, 64, DMA_TO_DEVICE);
	platform_device_unregister(device);
}

static void ring(struct timer_list *timer)
{
}

/* Free memory in which a timer runs. */
static void make_object(void)
{
	struct timer_list *timer = kzalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return;
	timer_setup(timer, ring, 0);
	mod_timer(timer, jiffies + 3600 * HZ);
	kfree(timer);
}

/* Read behind the end of an array. */
static void make_bounds(void)
{
	static int values[4];
	int index = ARRAY_SIZE(values);

	OPTIMIZER_HIDE_VAR(index);
	pr_info("lab_faults: %d\n", values[index]);
}

/* Take an entry out of a list twice. */
static void make_list(void)
{
	struct list_head list, entry;

	INIT_LIST_HEAD(&list);
	list_add(&entry, &list);
	list_del(&entry);
	list_del(&entry);
}

/* Use memory after it was freed. */
static void make_memory(void)
{
	char *memory = kmalloc(64, GFP_KERNEL);

	if (!memory)
		return;
	kfree(memory);
	OPTIMIZER_HIDE_VAR(memory);
	pr_info("lab_faults: %d\n", READ_ONCE(memory[8]));
}

/*
 * Forget memory: several pieces, since an old stack may still know the last one by
 * chance, which kmemleak takes for a reference.
 */
static void make_leak(void)
{
	void *memory;
	int i;

	for (i = 0; i < 16; i++) {
		memory = kmalloc(192, GFP_KERNEL);
		OPTIMIZER_HIDE_VAR(memory);
	}
}

static const struct {
	const char *kind;
	void (*make)(void);
} mistakes[] = {
	{ "lock", make_lock }, { "atomic", make_atomic }, { "dma", make_dma },
	{ "object", make_object }, { "bounds", make_bounds }, { "list", make_list },
	{ "memory", make_memory }, { "leak", make_leak },
};

static int __init lab_faults_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(mistakes); i++) {
		if (!strcmp(kind, mistakes[i].kind)) {
			mistakes[i].make();
			return 0;
		}
	}
	return strcmp(kind, "none") ? -EINVAL : 0;
}

static void __exit lab_faults_exit(void)
{
}

module_init(lab_faults_init);
module_exit(lab_faults_exit);

static void right(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 1 + 1, 2);
}

static void wrong(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 1 + 1, 3);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(right),
	KUNIT_CASE(wrong),
	{}
};

static struct kunit_suite suite = {
	.name = "lab_faults",
	.test_cases = cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("Mistakes for the detectors of the debug kernel");
MODULE_LICENSE("GPL");
