// SPDX-License-Identifier: GPL-2.0
/* The bodies of the tracepoints that trace.h declares. */
#include "roan.h"

#define CREATE_TRACE_POINTS
#include "base/trace.h"
