/* SPDX-License-Identifier: GPL-2.0 */
/* Setups with known expected results, and the checks of these results. */
#ifndef ROAN_CCSIM_CHECKS_H
#define ROAN_CCSIM_CHECKS_H

#include "ccsim.h"

/* @flows at @gbps with the paper's parameters, its marking and its 12 MB switch. */
struct setup setup_paper(u32 flows, double gbps);

/* Scales the paper's parameters from 40 Gb/s to s->link: times and rate steps scale, bytes do not. */
void setup_dilate(struct setup *s);

/* Sets the times of a run: measurement over the second half, throughput windows of run_ns / WINDOWS. */
void setup_times(struct setup *s, double ms, double join_ms);

void print_figures(const struct setup *s, const struct figures *f);

/* Prints KTAP; 0: all passed. @quick: seconds instead of a minute. */
int run_checks(bool quick);

#endif /* ROAN_CCSIM_CHECKS_H */
