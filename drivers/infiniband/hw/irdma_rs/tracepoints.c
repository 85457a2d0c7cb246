// SPDX-License-Identifier: GPL-2.0
/*
 * Defines the trace events, and the functions by which Rust passes them.
 */

#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include <trace/events/irdma_rs.h>
