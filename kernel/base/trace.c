// SPDX-License-Identifier: GPL-2.0
/* The bodies of the tracepoints. */
#include "base/base.h"
#define CREATE_TRACE_POINTS
#include "base/trace.h"
