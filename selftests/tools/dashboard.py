#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks a Grafana dashboard without a Grafana.

    dashboard.py structure DASHBOARD              what Grafana needs to import and lay it out
    dashboard.py rules [DASHBOARD]                its expressions as recording rules, variables replaced: for promtool check rules
    dashboard.py names RULES DASHBOARD METRICS    every metric that the two name is in METRICS, an exporter's output
"""
import json
import os
import re
import sys

DASHBOARD = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../tools/monitoring/roan-dashboard.json")


def load(path):
    with open(path) as f:
        return json.load(f)


def expressions(dashboard):
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def structure(path):
    dashboard = load(path)
    variables = {v["name"] for v in dashboard["templating"]["list"]}
    wrong = [k for k, kind in (("title", str), ("uid", str), ("schemaVersion", int), ("panels", list), ("time", dict), ("templating", dict),
                               ("annotations", dict)) if not isinstance(dashboard.get(k), kind)]
    ids, cells = set(), set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        covered = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        checks = {"id": panel["id"] not in ids, "place": not covered & cells and place["x"] + place["w"] <= 24,
                  "type": panel["type"] in ("timeseries", "stat"), "title": panel["title"] and panel["description"],
                  "unit": panel["fieldConfig"]["defaults"]["unit"], "targets": panel["targets"],
                  "refId": len({t["refId"] for t in panel["targets"]}) == len(panel["targets"]),
                  "source": all(t["datasource"]["uid"] == "${datasource}" for t in panel["targets"]),
                  "filter": all(('instance=~"$instance"' in t["expr"] and 'device=~"$device"' in t["expr"]) for t in panel["targets"])}
        wrong += ["%s: %s" % (panel["title"], name) for name, good in checks.items() if not good]
        ids.add(panel["id"])
        cells |= covered
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard["panels"]))) - {"__rate_interval"}
    wrong += ["variable %s" % v for v in used ^ variables]
    return wrong


def rules(path=DASHBOARD):
    print("groups:\n  - name: dashboard\n    rules:")
    for n, expr in enumerate(expressions(load(path))):
        expr = expr.replace("[$__rate_interval]", "[5m]").replace("$instance", ".*").replace("$device", ".*")
        print("      - {record: 'dashboard:%d', expr: '%s'}" % (n, expr))
    return []


def names(rules_path, dashboard_path, metrics_path):
    with open(metrics_path) as f:
        there = set(re.findall(r"^([a-z_]+)[{ ]", f.read(), re.M))
    with open(rules_path) as f:
        text = "\n".join(re.findall(r"expr: (.*)", f.read()))
    wanted = set(re.findall(r"\broan_\w+", text + "\n".join(expressions(load(dashboard_path)))))
    print("%d metrics used" % len(wanted))
    return sorted(wanted - there) if len(wanted) > 20 else ["too few metrics found"]


wrong = {"structure": structure, "rules": rules, "names": names}[sys.argv[1]](*sys.argv[2:])
sys.exit("wrong: " + ", ".join(wrong) if wrong else 0)
