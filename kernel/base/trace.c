// SPDX-License-Identifier: GPL-2.0
/* Instantiates the tracepoints of trace.h. */
#include "base/base.h"
#define CREATE_TRACE_POINTS
#include "base/trace.h"
