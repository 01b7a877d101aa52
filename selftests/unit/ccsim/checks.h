/* SPDX-License-Identifier: GPL-2.0 */
/* The setups that have an oracle, and the bars they must clear. */
#ifndef ROAN_CCSIM_CHECKS_H
#define ROAN_CCSIM_CHECKS_H

#include "ccsim.h"

/* @flows at @gbps with the paper's parameters, its marking and its 12 MB switch. */
struct setup setup_paper(u32 flows, double gbps);

/* The paper's parameters, which are for 40 Gb/s, for s->link: times stretched, rate steps shrunk alike; bytes stay. */
void setup_dilate(struct setup *s);

/* Measure over the last half; tell throughput apart in windows of a twentieth. */
void setup_times(struct setup *s, double ms, double join_ms);

void print_figures(const struct setup *s, const struct figures *f);

/* KTAP; 0: all passed. @quick: seconds instead of a minute. */
int run_checks(bool quick);

#endif /* ROAN_CCSIM_CHECKS_H */
